// Back-to-back shunt conversions on their way from the bus interrupt to the main loop: bare codes
// in a ring, and beside it the blocks they belong to, each with its times. One writer, one reader,
// no locks. When the ring is full the rest of the block goes into the tally: its charge and count
// reach the host although its times do not.
#ifndef OPJOULE_SAMPLING_EVEN_QUEUE_H_
#define OPJOULE_SAMPLING_EVEN_QUEUE_H_

#include <stdint.h>

#include "interrupt_lock.h"
#include "sample_queue.h"

namespace opjoule {

// An unbroken row of conversions, period_q8 / 256 ticks each.
struct EvenBlock {
  uint32_t first_end_ticks;
  uint32_t period_q8;
  uint32_t bus_end_ticks;  // of the bus reading before it
  uint16_t bus;            // its code
  uint8_t sensor;
  uint8_t flags;  // bits of protocol::Flag
};

// Without a constructor, as it shares its memory (sampler.h): clear() comes first.
class EvenQueue {
 public:
  static constexpr uint8_t kCapacity = 128;  // a power of two, as is the next
  static constexpr uint8_t kBlocks = 4;

  // Interrupt.
  void open(const EvenBlock& block) {
    dropping_ = tally_count_ != 0 || static_cast<uint8_t>(head_block_ - tail_block_) == kBlocks;
    if (dropping_) return;
    Entry& entry = blocks_[head_block_ & (kBlocks - 1)];
    entry.block = block;
    entry.closed = false;
    entry.taken = 0;
    head_block_ = static_cast<uint8_t>(head_block_ + 1);
  }
  // Of the block just opened, before its first code.
  void complete_opening(uint32_t first_end_ticks, uint16_t bus, uint32_t bus_end_ticks) {
    if (dropping_) return;
    EvenBlock& block = blocks_[static_cast<uint8_t>(head_block_ - 1) & (kBlocks - 1)].block;
    block.first_end_ticks = first_end_ticks;
    block.bus = bus;
    block.bus_end_ticks = bus_end_ticks;
  }
  OPJOULE_INLINE void push(int16_t code) {
    if (dropping_ || static_cast<uint8_t>(head_ - tail_) == kCapacity) {
      dropping_ = true;
      tally_count_ = static_cast<uint16_t>(tally_count_ + 1);
      tally_shunt_sum_ += code;
      return;
    }
    codes_[head_ & (kCapacity - 1)] = code;
    head_ = static_cast<uint8_t>(head_ + 1);
  }
  // False: part of the block went into the tally.
  bool close() {
    if (head_block_ != tail_block_) {
      Entry& entry = blocks_[static_cast<uint8_t>(head_block_ - 1) & (kBlocks - 1)];
      entry.end = head_;
      entry.closed = true;
    }
    return !dropping_;
  }

  // Main loop: the oldest block with codes not yet taken; how many are there, and whether no more
  // will come.
  bool front(EvenBlock* block, uint16_t* taken, uint8_t* available, bool* complete) {
    while (head_block_ != tail_block_) {
      Entry& entry = blocks_[tail_block_ & (kBlocks - 1)];
      *complete = entry.closed;
      *available = static_cast<uint8_t>((*complete ? entry.end : head_) - tail_);
      if (*available != 0 || !*complete) {
        *block = entry.block;
        *taken = entry.taken;
        return *available != 0;
      }
      tail_block_ = static_cast<uint8_t>(tail_block_ + 1);
    }
    return false;
  }
  int16_t at(uint8_t place) const {
    return codes_[static_cast<uint8_t>(tail_ + place) & (kCapacity - 1)];
  }
  void take(uint8_t count) {
    Entry& entry = blocks_[tail_block_ & (kBlocks - 1)];
    entry.taken = static_cast<uint16_t>(entry.taken + count);
    tail_ = static_cast<uint8_t>(tail_ + count);
  }
  bool empty() const { return head_ == tail_; }

  // Main loop: what did not fit, once all before it has been taken.
  bool take_tally(Tally* tally) {
    if (!empty()) return false;
    InterruptLock lock;
    if (tally_count_ == 0 || !empty()) return false;
    *tally = Tally{};
    tally->count = tally_count_;
    tally->shunt_sum.add(tally_shunt_sum_);
    tally_count_ = 0;
    tally_shunt_sum_ = 0;
    return true;
  }

  void clear() {
    InterruptLock lock;
    head_ = tail_ = head_block_ = tail_block_ = 0;
    dropping_ = false;
    tally_count_ = 0;
    tally_shunt_sum_ = 0;
  }

 private:
  struct Entry {
    EvenBlock block;
    uint16_t taken;  // codes the reader has taken
    uint8_t end;     // place after the last code, once closed
    volatile bool closed;
  };
  int16_t codes_[kCapacity];
  Entry blocks_[kBlocks];
  volatile uint8_t head_;
  volatile uint8_t tail_;
  volatile uint8_t head_block_;
  volatile uint8_t tail_block_;
  bool dropping_;
  uint16_t tally_count_;
  int32_t tally_shunt_sum_;
};

// A row of reads of one register at an even pace, carried out by the board without asking back.
struct PacedRead {
  uint32_t period_q8;   // 1/256 tick
  uint16_t late_ticks;  // a read later than this has missed its conversion: the row ends
  uint8_t count;
  uint8_t done;  // by the board: how many were made
};

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_EVEN_QUEUE_H_
