#include "meter.h"

#include "configure_fields.h"
#include "interrupt_lock.h"
#include "tick_clock.h"

namespace opjoule {

using protocol::Acquisition;
using protocol::ChipKind;
using protocol::Fault;
using protocol::Mode;
using protocol::Result;

namespace {
// Encoding a clock reply takes less than 200 us: the reply is stamped for a departure that far
// ahead, and held until then.
constexpr uint32_t kDepartureTicks = 250 * kTicksPerUs;
constexpr uint8_t kStatusBytes =
    protocol::Status::kBytes + kMaxSensors * protocol::StatusItem::kBytes;
// Room for the longest frame: 253 bytes of content.
constexpr uint8_t kMaxSamplesPerFrame = 32;
static_assert(kMaxSamplesPerFrame <= protocol::max_items<protocol::Pairs>(), "too long a frame");
constexpr uint16_t kLeastStackBytes = 32;
constexpr uint8_t kStatusTurns = 31;  // 1.016 s
}  // namespace

Meter::Meter(Controller& controller, const ControllerFacts& facts, TransmitRing& ring,
             SampleSource& source, EdgeLog& edges, FaultCounters& faults)
    : controller_(controller),
      facts_(facts),
      ring_(ring),
      source_(source),
      edges_(edges),
      faults_(faults),
      encoder_(ring),
      framer_(ring, encoder_, seq_),
      carrier_(source, framer_, controller) {}

void Meter::begin() {
  // Ends a frame that a reset may have cut off, so that the identity is not taken for the rest of
  // it.
  ring_.store(0, 0);
  ring_.publish(1);
  sensor_count_ = controller_.find_sensors(sensors_, kMaxSensors);
  answer_ = Answer::identity;
}

void Meter::receive(uint8_t byte, uint32_t ticks) {
  switch (decoder_.push(byte)) {
    case protocol::Decoded::nothing:
      return;
    case protocol::Decoded::bad:
      faults_.count(Fault::receive_bad_frame, kNoSensor, ticks);
      return;
    case protocol::Decoded::frame:
      handle(ticks);
      return;
  }
}

void Meter::run() {
  if (carrier_.behind()) carrier_.run();
  if (answer_ != Answer::none) {
    if (send_answer()) answer_ = Answer::none;
    // A clock reply waits for an idle line: nothing else may be sent before it.
    if (answer_ == Answer::clock) return;
  }
  if (source_.running() && edges_.pending()) {
    if (!room_for(protocol::Edge::kBytes)) return;
    send(edges_.take());
  }
  if (send_due_fault()) return;
  if (source_.running() && !carrier_.behind() &&
      static_cast<uint8_t>(controller_.turn() - last_status_turn_) >= kStatusTurns) {
    if (!room_for(kStatusBytes)) return;
    send_status();
  }
  carrier_.run();
}

void Meter::handle(uint32_t ticks) {
  const uint8_t type = decoder_.type();
  ack_ = {type, 0, 0, decoder_.seq()};
  protocol::Clock clock;
  switch (type) {
    case protocol::Identify::kType:
      answer_ = Answer::identity;
      break;
    case protocol::Configure::kType:
      configure();
      break;
    case protocol::Start::kType:
      start();
      break;
    case protocol::Stop::kType:
      source_.stop();
      controller_.finish_sampling();
      acknowledge(Result::ok);
      answer_ = Answer::stop;
      break;
    case protocol::Clock::kType:
      if (!decoder_.read(&clock)) return acknowledge(Result::bad_length);
      clock_reply_ = {clock.token, ticks, 0};
      answer_ = Answer::clock;
      break;
    case protocol::RequestStatus::kType:
      answer_ = Answer::status;
      break;
    default:
      acknowledge(Result::unknown_command);
      break;
  }
}

OPJOULE_NOINLINE void Meter::configure() {
  protocol::Configure wanted;
  if (!decoder_.read(&wanted)) return acknowledge(Result::bad_length);
  if (source_.running()) return acknowledge(Result::wrong_state);
  if (wanted.sensor >= sensor_count_) return acknowledge(Result::no_sensor);
  const FoundSensor& sensor = sensors_[wanted.sensor];
  if (wanted.samples_per_frame == 0 || wanted.samples_per_frame > kMaxSamplesPerFrame) {
    return acknowledge(Result::bad_value, configure_field::kSamplesPerFrame);
  }
  SensorPlan plan;
  uint16_t detail;
  const Result result = controller_.plan_sensor(sensor, wanted, &plan, &detail);
  if (result != Result::ok) return acknowledge(result, detail);
  source_.configure(wanted.sensor, plan);
  carrier_.set_samples_per_frame(wanted.sensor, wanted.samples_per_frame);
  acknowledge(Result::ok);
}

void Meter::start() {
  if (source_.running()) return acknowledge(Result::wrong_state);
  carrier_.restart();
  edges_.restart();
  last_status_turn_ = controller_.turn();
  if (!controller_.start_sampling()) {
    return acknowledge(source_.active_count() == 0 ? Result::no_sensor : Result::bad_value);
  }
  acknowledge(Result::ok);
}

void Meter::acknowledge(Result result, uint16_t detail) {
  ack_.result = static_cast<uint8_t>(result);
  ack_.detail = detail;
  answer_ = Answer::ack;
}

// True: the answer was sent. False: there is no room, or the line is not idle yet.
bool Meter::send_answer() {
  switch (answer_) {
    case Answer::none:
      return true;
    case Answer::clock:
      return send_clock_reply();
    case Answer::identity:
      if (!room_for(protocol::Identity::kBytes + kMaxSensors * protocol::IdentityItem::kBytes)) {
        return false;
      }
      send_identity();
      return true;
    case Answer::status:
      if (!room_for(kStatusBytes)) return false;
      send_status();
      return true;
    case Answer::ack:
      if (!room_for(protocol::Ack::kBytes)) return false;
      send(ack_);
      return true;
    case Answer::stop:
      if (!drained() || !room_for(protocol::Ack::kBytes)) return false;
      send(ack_);
      answer_ = Answer::status;
      return false;
  }
  return true;
}

// The reply is sent on an idle line at a moment fixed beforehand, so that its stamp is exact.
bool Meter::send_clock_reply() {
  framer_.close();
  controller_.start_transmit();
  if (!controller_.line_idle()) return false;
  clock_reply_.sent_ticks = controller_.now_ticks() + kDepartureTicks;
  encoder_.send(clock_reply_, seq_++);
  controller_.wait_until(clock_reply_.sent_ticks);
  controller_.start_transmit();
  return true;
}

OPJOULE_NOINLINE void Meter::send_identity() {
  framer_.close();
  protocol::Identity identity = {};
  identity.protocol_version = protocol::kVersion;
  for (uint8_t i = 0; i < 3; ++i) identity.firmware_version[i] = kFirmwareVersion[i];
  identity.controller = facts_.kind;
  identity.reset_cause = facts_.reset_cause;
  identity.tick_hz = protocol::kTickHz;
  for (uint8_t i = 0; i < 10; ++i) identity.device_id[i] = facts_.device_id[i];
  identity.max_samples_per_frame = kMaxSamplesPerFrame;
  encoder_.begin(protocol::Identity::kType, seq_++);
  identity.write(encoder_);
  for (uint8_t i = 0; i < sensor_count_; ++i) {
    protocol::IdentityItem{sensors_[i].address, static_cast<uint8_t>(sensors_[i].chip)}.write(
        encoder_);
  }
  encoder_.end();
  controller_.start_transmit();
}

OPJOULE_NOINLINE void Meter::send_status() {
  framer_.close();
  last_status_turn_ = controller_.turn();
  protocol::Status status = {};
  status.acquisition =
      static_cast<uint8_t>(source_.running() ? Acquisition::sampling : Acquisition::idle);
  status.reset_cause = facts_.reset_cause;
  status.ticks = controller_.now_ticks();
  status.tick_wraps = controller_.tick_wraps();
  status.edges = edges_.count();
  status.stack_free_bytes = controller_.stack_free_bytes();
  if (status.stack_free_bytes < kLeastStackBytes) {
    faults_.count(Fault::stack_low, kNoSensor, status.ticks);
  }
  for (uint8_t code = 0; code < FaultCounters::kCodes; ++code) {
    status.faults[code] = faults_.of(static_cast<Fault>(code));
  }
  encoder_.begin(protocol::Status::kType, seq_++);
  status.write(encoder_);
  for (uint8_t i = 0; i < sensor_count_; ++i) {
    const Totals& totals = carrier_.totals(i);
    protocol::StatusItem{totals.conversions, totals.shunt_sum.low, totals.bus_sum.low,
                         totals.clipped}
        .write(encoder_);
  }
  encoder_.end();
  controller_.start_transmit();
}

bool Meter::send_due_fault() {
  protocol::FaultMessage message;
  if (ring_.room() < protocol::encoded_bytes(protocol::FaultMessage::kBytes) + 4) return false;
  if (!faults_.take_due(controller_.turn(), &message)) return false;
  send(message);
  return true;
}

// After stop: all samples have been put into frames.
bool Meter::drained() {
  carrier_.run();
  if (!carrier_.empty()) return false;
  while (edges_.pending()) {
    if (!room_for(protocol::Edge::kBytes)) return false;
    send(edges_.take());
  }
  framer_.close();
  controller_.start_transmit();
  return true;
}

// Room for a message, and for the end of an open frame before it.
bool Meter::room_for(uint8_t body_bytes) {
  if (framer_.open() && ring_.room() >= 4) {
    framer_.close();
    controller_.start_transmit();
  }
  return ring_.room() >= protocol::encoded_bytes(body_bytes);
}

}  // namespace opjoule
