// Ring, sample frames, edges, faults: what reaches the line.
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "edge_gate.h"
#include "edge_log.h"
#include "fault_counters.h"
#include "frame_decoder.h"
#include "sample_framer.h"

using namespace opjoule;
using protocol::Fault;
using protocol::Flag;
using protocol::Mode;

namespace {

struct Received {
  uint8_t type;
  uint32_t seq;
  std::vector<uint8_t> body;
};

std::vector<Received> drain(TransmitRing& ring) {
  protocol::FrameDecoder<254> decoder;
  std::vector<Received> frames;
  while (!ring.empty()) {
    if (decoder.push(ring.pop()) != protocol::Decoded::frame) continue;
    frames.push_back(
        {decoder.type(), decoder.seq(), {decoder.body(), decoder.body() + decoder.body_size()}});
  }
  return frames;
}

protocol::Pairs pairs_header(const Received& frame) {
  protocol::Pairs header;
  protocol::ByteReader in(frame.body.data(), static_cast<uint8_t>(frame.body.size()));
  header.read(in);
  return header;
}

struct Line {
  TransmitRing ring;
  Encoder encoder{ring};
  uint32_t seq = 0;
  SampleFramer framer{ring, encoder, seq};
  Totals totals = {};

  bool append(uint32_t end_ticks, int16_t shunt, uint16_t bus = 1250, uint8_t flags = 0) {
    return framer.append({end_ticks, shunt, bus, flags, 0}, {Mode::pairs, false, 4}, totals);
  }
};

constexpr uint8_t bit(Flag flag) { return static_cast<uint8_t>(flag); }

}  // namespace

TEST_CASE("the ring shows the reader only what is published, and counts what is stored as taken") {
  TransmitRing ring;
  for (int turn = 0; turn < 10; ++turn) {
    CHECK(ring.room() == TransmitRing::kCapacity);
    for (uint8_t i = 0; i < 100; ++i) ring.store(i, i);
    CHECK(ring.empty());
    CHECK(ring.room() == TransmitRing::kCapacity - 100);
    ring.publish(100);
    CHECK(ring.room() == TransmitRing::kCapacity - 100);
    for (uint8_t i = 0; i < 100; ++i) CHECK(ring.pop() == i);
    CHECK(ring.empty());
  }
}

TEST_CASE("each frame carries the count and the sums of all conversions before it") {
  Line line;
  for (int i = 0; i < 10; ++i)
    REQUIRE(line.append(1000 + 2128 * i, static_cast<int16_t>(-100 + i)));
  line.framer.close();
  const auto frames = drain(line.ring);
  REQUIRE(frames.size() == 3);
  const auto third = pairs_header(frames[2]);
  CHECK(third.first_index == 8);
  CHECK(third.first_end_ticks == 1000 + 2128 * 8);
  CHECK(static_cast<int32_t>(third.shunt_sum) == -800 + 28);
  CHECK(third.bus_sum == 8 * 1250);
  CHECK(frames[2].body.size() == protocol::Pairs::kBytes + 2 * protocol::PairsItem::kBytes);
}

TEST_CASE("a new frame begins where the time step or the flags do not fit into the open one") {
  Line line;
  line.append(1000, 1, 1250, bit(Flag::gap_before));
  line.append(3000, 1);
  line.append(3000 + 70000, 1);
  line.append(76000, 1, 1250, bit(Flag::overflow));
  line.append(78000, 1, 1250, bit(Flag::overflow));
  line.append(80000, 1, 1250, bit(Flag::missed_before));
  line.framer.close();
  const auto frames = drain(line.ring);
  REQUIRE(frames.size() == 4);
  CHECK(pairs_header(frames[0]).flags == bit(Flag::gap_before));
  CHECK(pairs_header(frames[1]).flags == 0);
  CHECK(pairs_header(frames[2]).flags == bit(Flag::overflow));
  CHECK(pairs_header(frames[3]).flags == bit(Flag::missed_before));
}

TEST_CASE("each frame says how many conversions before it were at the end of a range") {
  Line line;
  for (int i = 0; i < 12; ++i) {
    line.append(1000 + 2128 * i, 1, 1250, i >= 2 && i < 7 ? bit(Flag::overflow) : 0);
  }
  line.framer.close();
  uint32_t seen = 0;
  for (const auto& frame : drain(line.ring)) {
    const auto header = pairs_header(frame);
    CHECK(header.clipped == (header.first_index < 2   ? 0
                             : header.first_index < 7 ? header.first_index - 2
                                                      : 5));
    seen = header.clipped;
  }
  CHECK(seen == 5);
  CHECK(line.totals.clipped == 5);
}

TEST_CASE("a full ring refuses a sample and loses nothing") {
  Line line;
  int stored = 0;
  while (line.append(1000 + 2128 * stored, 7)) ++stored;
  CHECK(stored > 10);
  CHECK(line.totals.conversions == static_cast<uint32_t>(stored));
  auto frames = drain(line.ring);
  CHECK(line.append(1000 + 2128 * stored, 7));
  line.framer.close();
  for (const auto& frame : drain(line.ring)) frames.push_back(frame);
  std::size_t items = 0;
  for (const auto& frame : frames) {
    items += (frame.body.size() - protocol::Pairs::kBytes) / protocol::PairsItem::kBytes;
  }
  CHECK(items + 3 > static_cast<std::size_t>(stored));
}

TEST_CASE("a bus reading between two shunt samples goes into the next frame's header") {
  Line line;
  Sample bus = {5000, 0, 1300, kBusOnly, 0};
  REQUIRE(line.framer.append(bus, {Mode::shunts, false, 4}, line.totals));
  REQUIRE(line.framer.append({6064, -20, 0, bit(Flag::gap_before), 0}, {Mode::shunts, false, 4},
                             line.totals));
  line.framer.close();
  const auto frames = drain(line.ring);
  REQUIRE(frames.size() == 1);
  protocol::Shunts header;
  protocol::ByteReader in(frames[0].body.data(), static_cast<uint8_t>(frames[0].body.size()));
  header.read(in);
  CHECK(header.bus == 1300);
  CHECK(header.bus_age_ticks == 1064);
}

TEST_CASE("each edge repeats the three before it, and none across a lost one") {
  EdgeLog log;
  for (uint32_t i = 0; i < 5; ++i) REQUIRE(log.push(1000 * i, i & 1));
  for (int i = 0; i < 4; ++i) log.take();
  const auto fifth = log.take();
  CHECK(fifth.index == 4);
  CHECK(fifth.previous_count == 3);
  CHECK(fifth.previous_ticks[2] == 1000);
  CHECK(fifth.previous_level[0] == 1);
  log.skip();
  log.push(9000, 0);
  const auto after = log.take();
  CHECK(after.index == 6);
  CHECK(after.previous_count == 0);
}

TEST_CASE("edges beyond the log's capacity are lost, and counted") {
  EdgeLog log;
  int kept = 0;
  for (uint32_t i = 0; i < 20; ++i) kept += log.push(i, i & 1);
  CHECK(kept == 8);
  CHECK(log.count() == 20);
}

TEST_CASE("a fault is reported at once, then at most every 98 ms, with its whole count") {
  FaultCounters faults;
  protocol::FaultMessage message;
  CHECK_FALSE(faults.take_due(0, &message));
  faults.count(Fault::i2c_nack, 2, 500);
  REQUIRE(faults.take_due(0, &message));
  CHECK(message.code == static_cast<uint8_t>(Fault::i2c_nack));
  CHECK(message.sensor == 2);
  for (int i = 0; i < 9; ++i) faults.count(Fault::i2c_nack, 2, 600);
  CHECK_FALSE(faults.take_due(2, &message));
  REQUIRE(faults.take_due(5, &message));
  CHECK(message.count == 10);
  CHECK_FALSE(faults.take_due(20, &message));
}

TEST_CASE("a fault counter stops at its end") {
  FaultCounters faults;
  faults.count(Fault::shunt_overflow, 0, 0, 65000);
  faults.count(Fault::shunt_overflow, 0, 0, 65000);
  CHECK(faults.of(Fault::shunt_overflow) == 65535);
}

TEST_CASE("a sum of 64 bits carries and borrows") {
  Sum sum = {0xFFFFFFF0u, 0};
  sum.add(0x20);
  CHECK(sum.low == 0x10);
  CHECK(sum.high == 1);
  sum.add(-0x11);
  CHECK(sum.low == 0xFFFFFFFFu);
  CHECK(sum.high == 0);
  sum.add(int32_t{-1});
  sum.add(Sum{1, 0});
  CHECK(sum.low == 0xFFFFFFFFu);
  Sum below = {0, 0};
  below.add(-5);
  CHECK(below.low == 0xFFFFFFFBu);
  CHECK(below.high == 0xFFFFFFFFu);
  below.add(5);
  CHECK(below.low == 0);
  CHECK(below.high == 0);
}

TEST_CASE("a 20-bit sensor's samples go with wide codes and sums") {
  Line line;
  const SampleFormat format = {Mode::pairs, true, 2};
  for (int i = 0; i < 3; ++i) {
    REQUIRE(line.framer.append({1000u + 2160u * static_cast<uint32_t>(i), -500000, 25600, 0, 1},
                               format, line.totals));
  }
  line.framer.close();
  const auto frames = drain(line.ring);
  REQUIRE(frames.size() == 2);
  CHECK(frames[1].type == protocol::Wide::kType);
  protocol::Wide header;
  protocol::WideItem item;
  protocol::ByteReader in(frames[1].body.data(), static_cast<uint8_t>(frames[1].body.size()));
  header.read(in);
  item.read(in);
  CHECK(header.first_index == 2);
  CHECK(static_cast<int64_t>(header.shunt_sum) == -1000000);
  CHECK(header.bus_sum == 51200);
  CHECK(item.shunt == -500000);
  CHECK(item.bus == 25600);
}

// Brings an edge at `ticks`, and before it the turns that the counter has made since the last one.
bool brings(EdgeGate& gate, uint32_t& turns, uint32_t ticks) {
  for (; turns != ticks >> 16; turns = (turns + 1) & 0xFFFF) gate.turn();
  return !gate.closed() && gate.admit(static_cast<uint16_t>(ticks));
}

TEST_CASE("edges of a board pass, however regular") {
  for (const uint32_t gap_ticks : {1200u, 5000u, 65536u, 1048576u, 2000000u}) {
    EdgeGate gate;
    uint32_t turns = 0;
    for (uint32_t edge = 0; edge < 2000; ++edge) CHECK(brings(gate, turns, edge * gap_ticks));
  }
}

TEST_CASE("of a line that oscillates a few edges pass in each pause") {
  for (const uint32_t rate_hz : {2500u, 10000u, 100000u}) {
    EdgeGate gate;
    uint32_t turns = 0;
    int passed = 0;
    for (uint64_t edge = 0; edge < 2 * rate_hz; ++edge) {
      passed += brings(gate, turns, static_cast<uint32_t>(edge * 2000000u / rate_hz));
    }
    // 2 s are 61 turns, so 15 to 20 pauses. The slowest needs some windows to bring one too many.
    CHECK(passed >= 15);
    CHECK(passed <= 20 * 3 * (EdgeGate::kMostEdges + 1));
  }
}

TEST_CASE("after a pause a quiet line is seen again") {
  EdgeGate gate;
  uint32_t turns = 0;
  uint32_t ticks = 1000;
  while (brings(gate, turns, ticks)) ticks += 20;
  CHECK(gate.closed());
  CHECK_FALSE(brings(gate, turns, ticks + (EdgeGate::kPauseTurns - 1) * 65536));
  CHECK(brings(gate, turns, ticks + EdgeGate::kPauseTurns * 65536));
}
