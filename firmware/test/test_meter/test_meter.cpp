// The meter as the host sees it: commands in, frames out, on a controller that is all software.
#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "software_controller.h"

using namespace opjoule;
using protocol::Fault;
using protocol::Mode;
using protocol::Result;

namespace {

struct Frame {
  uint8_t type;
  uint32_t seq;
  std::vector<uint8_t> body;

  template <typename M>
  M as() const {
    M message;
    protocol::ByteReader in(body.data(), static_cast<uint8_t>(body.size()));
    message.read(in);
    REQUIRE(in.ok());
    return message;
  }
};

class Host {
 public:
  TransmitRing ring;
  EdgeLog edges;
  FaultCounters faults;
  Sampler sampler{faults};
  SoftwareController controller{sampler};
  ControllerFacts facts = {1, 4, {}};
  Meter meter{controller, facts, ring, sampler, edges, faults};
  std::vector<Frame> frames;

  Host() {
    meter.begin();
    run();
    frames.clear();
  }

  void send_bytes(const std::vector<uint8_t>& bytes) {
    for (const uint8_t byte : bytes) {
      for (int i = 0; i < 100 && !meter.ready_to_receive(); ++i) run_once();
      meter.receive(byte, 777);
    }
  }

  template <typename M>
  void send(const M& message) {
    TransmitRing line;
    protocol::FrameEncoder<TransmitRing> encoder(line);
    encoder.send(message, sent_++);
    std::vector<uint8_t> bytes;
    while (!line.empty()) bytes.push_back(line.pop());
    send_bytes(bytes);
    run();
  }

  void run_once() {
    meter.run();
    while (!ring.empty()) {
      if (decoder_.push(ring.pop()) != protocol::Decoded::frame) continue;
      frames.push_back({decoder_.type(),
                        decoder_.seq(),
                        {decoder_.body(), decoder_.body() + decoder_.body_size()}});
    }
  }
  void run() {
    for (int i = 0; i < 10; ++i) run_once();
  }
  void sample(double seconds) {
    const double end = controller.chip.now_ticks + seconds * kTicksPerSecond;
    while (controller.chip.now_ticks < end) {
      controller.sample_once();
      run_once();
    }
  }

  // The last frame of this kind; there must be one.
  template <typename M>
  Frame last() const {
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      if (frame->type == M::kType) return *frame;
    }
    FAIL("no such frame");
    return {};
  }
  template <typename M>
  size_t count_of() const {
    size_t count = 0;
    for (const Frame& frame : frames) count += frame.type == M::kType;
    return count;
  }
  Result acknowledged() const {
    return static_cast<Result>(last<protocol::Ack>().as<protocol::Ack>().result);
  }
  void configure(Mode mode = Mode::pairs, uint8_t adc = 3) {
    send(protocol::Configure{0, static_cast<uint8_t>(mode), adc, 3, 3, 8, 64});
  }

 private:
  protocol::FrameDecoder<254> decoder_;
  uint32_t sent_ = 40;
};

}  // namespace

TEST_CASE("identify names the firmware, the controller and the sensor found on the bus") {
  Host host;
  host.send(protocol::Identify{});
  const Frame frame = host.last<protocol::Identity>();
  const auto identity = frame.as<protocol::Identity>();
  CHECK(identity.protocol_version == protocol::kVersion);
  CHECK(identity.controller == 1);
  CHECK(identity.reset_cause == 4);
  REQUIRE(frame.body.size() == protocol::Identity::kBytes + protocol::IdentityItem::kBytes);
  CHECK(frame.body[protocol::Identity::kBytes] == 0x40);
  CHECK(frame.body[protocol::Identity::kBytes + 1] ==
        static_cast<uint8_t>(protocol::ChipKind::ina219));
}

TEST_CASE("every refused command is answered with its reason") {
  Host host;
  host.send(protocol::Start{});
  CHECK(host.acknowledged() == Result::no_sensor);
  host.send(protocol::Configure{3, 1, 3, 3, 3, 8, 64});
  CHECK(host.acknowledged() == Result::no_sensor);
  host.send(protocol::Configure{0, 1, 3, 3, 9, 8, 64});
  CHECK(host.acknowledged() == Result::bad_value);
  CHECK(host.last<protocol::Ack>().as<protocol::Ack>().detail == 4);
  host.send(protocol::Configure{0, 1, 3, 3, 3, 0, 64});
  CHECK(host.acknowledged() == Result::bad_value);
  host.send(protocol::Ack{});
  CHECK(host.acknowledged() == Result::unknown_command);
  host.configure();
  CHECK(host.acknowledged() == Result::ok);
  host.send(protocol::Start{});
  CHECK(host.acknowledged() == Result::ok);
  host.configure();
  CHECK(host.acknowledged() == Result::wrong_state);
  host.send(protocol::Start{});
  CHECK(host.acknowledged() == Result::wrong_state);
}

TEST_CASE("sampling sends every conversion once, with sums that add up, and a status each second") {
  Host host;
  host.configure();
  host.send(protocol::Start{});
  host.sample(2.2);
  host.send(protocol::Stop{});
  uint32_t conversions = 0;
  int64_t sum = 0;
  for (const Frame& frame : host.frames) {
    if (frame.type != protocol::Pairs::kType) continue;
    const auto header = frame.as<protocol::Pairs>();
    CHECK(header.first_index == conversions);
    CHECK(header.shunt_sum == static_cast<uint32_t>(sum));
    protocol::ByteReader in(frame.body.data(), static_cast<uint8_t>(frame.body.size()));
    protocol::Pairs skipped;
    skipped.read(in);
    while (in.left() != 0) {
      protocol::PairsItem item;
      item.read(in);
      sum += item.shunt;
      ++conversions;
    }
  }
  CHECK(conversions > 2.1 * 939);
  CHECK(host.controller.chip.missed == 0);
  CHECK(host.controller.chip.repeated_reads == 0);
  int statuses = 0;
  for (const Frame& frame : host.frames) statuses += frame.type == protocol::Status::kType;
  CHECK(statuses == 3);
  const auto status = host.last<protocol::Status>();
  CHECK(status.as<protocol::Status>().acquisition ==
        static_cast<uint8_t>(protocol::Acquisition::idle));
  protocol::ByteReader in(status.body.data() + protocol::Status::kBytes,
                          protocol::StatusItem::kBytes);
  protocol::StatusItem item;
  item.read(in);
  CHECK(item.conversions == conversions);
  CHECK(item.shunt_sum == static_cast<uint32_t>(sum));
}

TEST_CASE("frames are numbered without a hole") {
  Host host;
  host.configure(Mode::shunts);
  host.send(protocol::Start{});
  host.sample(0.5);
  host.send(protocol::RequestStatus{});
  host.send(protocol::Stop{});
  uint32_t expected = host.frames.front().seq;
  for (const Frame& frame : host.frames) CHECK(frame.seq == expected++);
}

TEST_CASE("a clock request is answered when the line is idle, with its time of arrival") {
  Host host;
  host.configure();
  host.send(protocol::Start{});
  host.controller.line_is_idle = false;
  host.send(protocol::Clock{0xABCD1234});
  const auto waiting = host.frames.size();
  host.sample(0.005);
  CHECK(host.frames.size() == waiting);
  // The line never rests: the samples, of which the queue holds 16, do not wait for it.
  host.sample(0.1);
  CHECK(host.frames.size() > waiting);
  CHECK(host.count_of<protocol::ClockReply>() == 0);
  CHECK(host.faults.of(Fault::transmit_full) == 0);
  host.controller.line_is_idle = true;
  host.sample(0.002);
  const auto reply = host.last<protocol::ClockReply>().as<protocol::ClockReply>();
  CHECK(reply.token == 0xABCD1234);
  CHECK(reply.received_ticks == 777);
  CHECK(static_cast<int32_t>(static_cast<uint32_t>(host.controller.chip.now_ticks) -
                             reply.sent_ticks) >= 0);
}

TEST_CASE("a damaged frame is counted, reported, and the next one is understood") {
  Host host;
  host.send_bytes({0x05, 0x81, 0x11, 0x22, 0x33, 0x00});
  host.run();
  CHECK(host.faults.of(Fault::receive_bad_frame) == 1);
  const auto fault = host.last<protocol::FaultMessage>().as<protocol::FaultMessage>();
  CHECK(fault.code == static_cast<uint8_t>(Fault::receive_bad_frame));
  host.send(protocol::Identify{});
  host.last<protocol::Identity>();
}

TEST_CASE("a sensor whose supply failed in mid-run is noticed, reported and set up again") {
  Host host;
  host.send(protocol::Configure{0, 1, 9, 9, 1, 8, 0});
  REQUIRE(host.acknowledged() == Result::ok);
  host.send(protocol::Start{});
  host.sample(1);
  host.controller.chip.lose_supply();
  host.sample(3);
  CHECK(host.faults.of(Fault::sensor_reset) == 1);
  const auto fault = host.last<protocol::FaultMessage>().as<protocol::FaultMessage>();
  CHECK(fault.count >= 1);
  CHECK(host.controller.chip.repeated_reads <= 1);  // where the supply failed between poll and read
}

TEST_CASE("a sensor that stops answering is reported, and sampled again when it comes back") {
  Host host;
  host.configure();
  host.send(protocol::Start{});
  host.sample(0.2);
  host.controller.chip.answers = false;
  host.sample(0.2);
  CHECK(host.faults.of(Fault::i2c_nack) > 10);
  host.controller.chip.answers = true;
  host.frames.clear();
  host.sample(0.2);
  bool missed_before = false;
  for (const Frame& frame : host.frames) {
    if (frame.type != protocol::Pairs::kType) continue;
    missed_before |= (frame.as<protocol::Pairs>().flags &
                      static_cast<uint8_t>(protocol::Flag::missed_before)) != 0;
  }
  CHECK(missed_before);
}

TEST_CASE("conversions that the line cannot take keep their charge in the sums") {
  Host host;
  host.configure();
  host.send(protocol::Start{});
  const double end = host.controller.chip.now_ticks + 0.1 * kTicksPerSecond;
  while (host.controller.chip.now_ticks < end)
    host.controller.sample_once();  // the main loop hangs
  host.sample(0.1);
  host.send(protocol::Stop{});
  CHECK(host.faults.of(Fault::transmit_full) > 0);
  const auto status = host.last<protocol::Status>();
  protocol::ByteReader in(status.body.data() + protocol::Status::kBytes,
                          protocol::StatusItem::kBytes);
  protocol::StatusItem item;
  item.read(in);
  CHECK(item.conversions == host.controller.chip.shunt_ends.size());
  int64_t sum = 0;
  for (const int16_t code : host.controller.chip.shunt_codes) sum += code;
  CHECK(item.shunt_sum == static_cast<uint32_t>(sum));
}
