// What the firmware reads from its line: frames, and the commands in them at any moment.
#include <cstring>

#include "../../firmware/test/test_meter/software_controller.h"
#include "../parsers.h"
#include "frame_encoder.h"

namespace opjoule {
namespace fuzz {
namespace {

using protocol::Decoded;

// Type to CRC of a frame, decoded by the plain rule of COBS; empty if that does not hold.
const std::vector<uint8_t>& plain_decode(const std::vector<uint8_t>& stuffed) {
  static const std::vector<uint8_t> kNone;
  static std::vector<uint8_t> out;
  out.clear();
  for (size_t at = 0; at < stuffed.size();) {
    const uint8_t code = stuffed[at++];
    if (at + code - 1 > stuffed.size()) return kNone;
    out.insert(out.end(), stuffed.begin() + at, stuffed.begin() + at + code - 1);
    at += code - 1;
    if (code != 0xFF && at < stuffed.size()) out.push_back(0);
  }
  uint16_t crc = protocol::kCrcInit;
  if (out.size() < protocol::kHeaderBytes + protocol::kCrcBytes) return kNone;
  for (size_t i = 0; i + 2 < out.size(); ++i) crc = protocol::crc16_update(crc, out[i]);
  const bool whole = out[out.size() - 2] == (crc & 0xFF) && out[out.size() - 1] == crc >> 8;
  return whole ? out : kNone;
}

// A decoder of `Capacity` bytes finds the frames that the plain rule finds, as far as they fit.
template <uint8_t Capacity>
void check_decoder(const uint8_t* data, size_t size) {
  protocol::FrameDecoder<Capacity> decoder;
  static std::vector<uint8_t> stuffed;
  stuffed.clear();
  for (size_t i = 0; i < size; ++i) {
    const Decoded decoded = decoder.push(data[i]);
    if (data[i] != 0) {
      stuffed.push_back(data[i]);
      expect(decoded == Decoded::nothing, "a frame ends with a zero alone");
      continue;
    }
    const std::vector<uint8_t>& plain = plain_decode(stuffed);
    const bool fits = !plain.empty() && plain.size() <= Capacity;
    expect((decoded == Decoded::frame) == fits, "a frame is found where there is one");
    expect(stuffed.empty() == (decoded == Decoded::nothing), "what is no frame is told");
    if (decoded == Decoded::frame) {
      expect(decoder.type() == plain[0], "its type is that of the frame");
      expect(std::memcmp(decoder.body(), plain.data() + protocol::kHeaderBytes,
                         decoder.body_size()) == 0,
             "its body is that of the frame");
      protocol::Configure configure;
      protocol::Clock clock;
      static_cast<void>(decoder.read(&configure));
      static_cast<void>(decoder.read(&clock));
    }
    stuffed.clear();
  }
}

// A meter, its host, and the frames between them.
class MeterOnDesk {
 public:
  MeterOnDesk() { meter_.begin(); }

  template <typename M>
  void send(const M& message) {
    TransmitRing line;
    protocol::FrameEncoder<TransmitRing> encoder(line);
    encoder.send(message, sent_++);
    while (!line.empty()) receive(line.pop());
  }
  void receive(uint8_t byte) {
    for (int i = 0; i < 200 && !meter_.ready_to_receive(); ++i) run_once();
    expect(meter_.ready_to_receive(), "every command is answered");
    meter_.receive(byte, controller_.now_ticks());
  }
  void run_once() {
    meter_.run();
    while (!ring_.empty()) {
      const Decoded decoded = decoder_.push(ring_.pop());
      expect(decoded != Decoded::bad, "the meter sends whole frames alone");
      if (decoded != Decoded::frame) continue;
      expect(decoder_.seq() == expected_seq_++, "its frames are numbered without a hole");
    }
  }
  void sample(int steps) {
    for (int i = 0; i < steps; ++i) {
      controller_.sample_once();
      run_once();
    }
  }
  void unplug(bool unplugged) { controller_.chip.answers = !unplugged; }
  void lose_supply() { controller_.chip.lose_supply(); }
  void edge(uint8_t level) {
    if (!edges_.push(controller_.now_ticks(), level)) {
      faults_.count(protocol::Fault::edge_missed, kNoSensor, 0);
    }
  }

 private:
  TransmitRing ring_;
  EdgeLog edges_;
  FaultCounters faults_;
  Sampler sampler_{faults_};
  SoftwareController controller_{sampler_};
  ControllerFacts facts_ = {1, 4, {}};
  Meter meter_{controller_, facts_, ring_, sampler_, edges_, faults_};
  protocol::FrameDecoder<254> decoder_;
  uint32_t sent_ = 0;
  uint32_t expected_seq_ = 0;
};

protocol::Configure configuration(Bytes& in) {
  protocol::Configure wanted = {};
  wanted.sensor = in.byte() & 1;
  wanted.mode = in.byte();
  wanted.shunt_adc = in.byte();
  wanted.bus_adc = in.byte();
  wanted.range = in.byte();
  wanted.samples_per_frame = in.byte();
  wanted.bus_every = in.byte();
  return wanted;
}

}  // namespace

void take_frames(const uint8_t* data, size_t size) {
  check_decoder<24>(data, size);
  check_decoder<254>(data, size);
}

// Commands in any order, garbage, a sensor that comes and goes, edges; the meter goes on.
void take_commands(const uint8_t* data, size_t size) {
  MeterOnDesk desk;
  for (Bytes in(data, size < 100 ? size : 100); !in.empty();) {
    const uint8_t what = in.byte();
    switch (what & 15) {
      case 0:
        desk.send(protocol::Identify{});
        break;
      case 1:
        desk.send(configuration(in));
        break;
      case 2:
        desk.send(protocol::Start{});
        break;
      case 3:
        desk.send(protocol::Stop{});
        break;
      case 4:
        desk.send(protocol::Clock{static_cast<uint32_t>(in.number(4))});
        break;
      case 5:
        desk.send(protocol::RequestStatus{});
        break;
      case 6:
        desk.send(protocol::Ack{});
        break;
      case 7:
        desk.unplug((what & 16) != 0);
        break;
      case 8:
        desk.lose_supply();
        break;
      case 9:
        desk.edge(what >> 4 & 1);
        break;
      case 10:
        desk.send(protocol::Configure{0, 1, 3, 3, 3, 8, 64});
        break;
      case 11:
        desk.receive(in.byte());
        break;
      default:
        desk.sample(what >> 3);
        break;
    }
  }
  desk.send(protocol::Stop{});
  desk.receive(0);  // only taken once the stop is answered
}

const std::vector<Parser>& parsers() {
  static const std::vector<Parser> all = {{"frames", take_frames}, {"commands", take_commands}};
  return all;
}

}  // namespace fuzz
}  // namespace opjoule
