// The meter: answers the host's commands, and carries samples, edges, faults and status to it.
// Portable; the Controller does what needs hardware. Everything here runs in the main loop.
#ifndef OPJOULE_METER_METER_H_
#define OPJOULE_METER_METER_H_

#include <stdint.h>

#include "controller.h"
#include "edge_log.h"
#include "fault_counters.h"
#include "frame_decoder.h"
#include "messages.h"
#include "sample_carrier.h"
#include "sample_framer.h"
#include "sample_source.h"
#include "transmit_ring.h"

namespace opjoule {

constexpr uint8_t kFirmwareVersion[3] = {0, 1, 0};

class Meter {
 public:
  Meter(Controller& controller, const ControllerFacts& facts, TransmitRing& ring,
        SampleSource& source, EdgeLog& edges, FaultCounters& faults);

  // Finds the sensors and sends the identity.
  void begin();

  // A byte from the host. `ticks`: when it arrived; only that of a frame's last byte is used.
  void receive(uint8_t byte, uint32_t ticks);

  // Does whatever is to be done; to be called again and again. While sampling, a call takes some
  // milliseconds, since the bus interrupts use most of the processor's time.
  void run();

  // No answer is waiting: receive() may be given another byte.
  bool ready_to_receive() const { return answer_ == Answer::none; }

 private:
  enum class Answer : uint8_t { none, identity, clock, status, ack, stop };

  void handle(uint32_t ticks);
  void configure();
  void start();
  void acknowledge(protocol::Result result, uint16_t detail = 0);

  bool send_answer();
  bool send_clock_reply();
  void send_identity();
  void send_status();
  bool send_due_fault();
  bool drained();

  template <typename M>
  void send(const M& message) {
    framer_.close();
    encoder_.send(message, seq_++);
    controller_.start_transmit();
  }
  bool room_for(uint8_t body_bytes);

  Controller& controller_;
  const ControllerFacts& facts_;
  TransmitRing& ring_;
  SampleSource& source_;
  EdgeLog& edges_;
  FaultCounters& faults_;
  uint32_t seq_ = 0;
  Encoder encoder_;
  SampleFramer framer_;
  SampleCarrier carrier_;
  protocol::FrameDecoder<24> decoder_;
  FoundSensor sensors_[kMaxSensors];
  uint8_t sensor_count_ = 0;
  uint8_t last_status_turn_ = 0;
  Answer answer_ = Answer::none;
  protocol::Ack ack_ = {};
  protocol::ClockReply clock_reply_ = {};
};

}  // namespace opjoule

#endif  // OPJOULE_METER_METER_H_
