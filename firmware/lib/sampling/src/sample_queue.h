// Conversions on their way from the sampler (interrupt) to the framer (main loop): one writer, one
// reader, no locks. The reader may take one sensor's samples and leave those of another. When the
// queue is full, conversions are added up in a tally, one for each sensor: their charge and count
// still reach the host, their times do not. A tally stays open until the reader has emptied the
// queue and taken it, which keeps queue and tally in order.
#ifndef OPJOULE_SAMPLING_SAMPLE_QUEUE_H_
#define OPJOULE_SAMPLING_SAMPLE_QUEUE_H_

#include <stdint.h>

#include "interrupt_lock.h"
#include "messages.h"

namespace opjoule {

constexpr uint8_t kMaxSensors = 3;

struct Sample {
  uint32_t end_ticks;  // best estimate of the conversion's end
  int32_t shunt;       // code, up to 20 bits with sign
  uint32_t bus;        // code; a bus reading alone (kBusOnly) has only this
  uint8_t flags;       // bits of protocol::Flag, kBusOnly, kTaken
  uint8_t sensor;
};

constexpr uint8_t kBusOnly = 0x80;  // not a sample: the bus voltage measured between two of them
constexpr uint8_t kTaken = 0x40;    // the reader is done with it

constexpr uint8_t flag_bit(protocol::Flag flag) { return static_cast<uint8_t>(flag); }

// A sum modulo 2^64, without the compiler's 64-bit arithmetic, which is slow and large on an AVR.
struct Sum {
  uint32_t low;
  uint32_t high;

  void add(int32_t value) {
    low += static_cast<uint32_t>(value);
    if (value >= 0) {
      if (low < static_cast<uint32_t>(value)) ++high;
    } else if (low >= static_cast<uint32_t>(value)) {
      --high;
    }
  }
  void add(const Sum& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
  }
};

struct Tally {
  uint16_t count;
  uint16_t clipped;  // of these, with Flag::overflow
  Sum shunt_sum;
  Sum bus_sum;
};

class SampleQueue {
 public:
  static constexpr uint8_t kCapacity = 16;  // a power of two

  // Interrupt. False: it went into the tally.
  bool push(const Sample& sample) {
    Tally& tally = tallies_[sample.sensor];
    if (tally.count != 0 || size() == kCapacity) {
      if (sample.flags & kBusOnly) return true;
      tally.count = static_cast<uint16_t>(tally.count + 1);
      if (sample.flags & flag_bit(protocol::Flag::overflow)) {
        tally.clipped = static_cast<uint16_t>(tally.clipped + 1);
      }
      tally.shunt_sum.add(sample.shunt);
      tally.bus_sum.add(static_cast<int32_t>(sample.bus));
      overflowed_ = true;
      return false;
    }
    entries_[head_ & (kCapacity - 1)] = sample;
    head_ = static_cast<uint8_t>(head_ + 1);
    return true;
  }

  // Main loop. Entries 0 (oldest) to size() - 1; the place of an entry that was taken becomes free
  // once all before it are taken, too.
  uint8_t size() const { return static_cast<uint8_t>(head_ - tail_); }
  const Sample& at(uint8_t place) const {
    return entries_[static_cast<uint8_t>(tail_ + place) & (kCapacity - 1)];
  }
  void take(uint8_t place) {
    entries_[static_cast<uint8_t>(tail_ + place) & (kCapacity - 1)].flags = kTaken;
  }
  // How many places that gave.
  uint8_t free_taken() {
    uint8_t tail = tail_;
    while (tail != head_ && entries_[tail & (kCapacity - 1)].flags == kTaken) ++tail;
    const uint8_t freed = static_cast<uint8_t>(tail - tail_);
    tail_ = tail;
    return freed;
  }

  // Main loop: what did not fit, once everything before it has been taken and freed.
  bool take_tally(uint8_t sensor, Tally* tally) {
    if (!overflowed_ || size() != 0) return false;
    InterruptLock lock;
    if (tallies_[sensor].count == 0 || size() != 0) return false;
    *tally = tallies_[sensor];
    tallies_[sensor] = Tally{};
    return true;
  }

  void clear() {
    InterruptLock lock;
    head_ = tail_ = 0;
    overflowed_ = false;
    for (Tally& tally : tallies_) tally = Tally{};
  }

 private:
  Sample entries_[kCapacity];
  Tally tallies_[kMaxSensors] = {};
  volatile uint8_t head_ = 0;
  volatile uint8_t tail_ = 0;
  volatile bool overflowed_ = false;  // since clear()
};

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_SAMPLE_QUEUE_H_
