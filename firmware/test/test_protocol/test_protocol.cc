// The wire codec: golden frames both ways, and what damaged bytes do.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "crc16.h"
#include "frame_decoder.h"
#include "frame_encoder.h"
#include "golden_frames.h"

using namespace opjoule::protocol;

namespace {

// A transmit ring without end that shows what was published.
class Sink {
 public:
  void store(uint8_t offset, uint8_t byte) {
    if (pending_.size() <= offset) pending_.resize(offset + 1u);
    pending_[offset] = byte;
  }
  void publish(uint8_t count) {
    bytes.insert(bytes.end(), pending_.begin(), pending_.begin() + count);
    pending_.erase(pending_.begin(), pending_.begin() + count);
  }
  std::vector<uint8_t> bytes;

 private:
  std::vector<uint8_t> pending_;
};

template <typename M, typename Item>
std::vector<uint8_t> encode(const M& message, uint32_t seq, const std::vector<Item>& items) {
  Sink sink;
  FrameEncoder<Sink> encoder(sink);
  encoder.begin(M::kType, seq);
  message.write(encoder);
  for (const Item& item : items) item.write(encoder);
  encoder.end();
  return sink.bytes;
}

std::vector<uint8_t> encode(const Clock& message, uint32_t seq) {
  return encode(message, seq, std::vector<NoItem>{});
}

using Decoder = FrameDecoder<kMaxFrameBytes>;

// Pushes all, returns how often each result came.
struct Counts {
  int frames = 0;
  int bad = 0;
};
template <typename D>
Counts push_all(D& decoder, const std::vector<uint8_t>& bytes) {
  Counts counts;
  for (uint8_t byte : bytes) {
    const Decoded result = decoder.push(byte);
    counts.frames += result == Decoded::frame;
    counts.bad += result == Decoded::bad;
  }
  return counts;
}

}  // namespace

TEST_CASE("CRC-16/IBM-3740 gives its catalogue check value") {
  uint16_t crc = kCrcInit;
  for (char c : std::string("123456789")) crc = crc16_update(crc, static_cast<uint8_t>(c));
  CHECK(crc == 0x29B1);
}

TEST_CASE_TEMPLATE("a golden frame is encoded to its bytes", Golden, OPJOULE_GOLDEN_FRAMES) {
  CHECK(encode(Golden::message(), Golden::seq(), Golden::items()) == Golden::bytes());
}

TEST_CASE_TEMPLATE("a golden frame is decoded to its fields", Golden, OPJOULE_GOLDEN_FRAMES) {
  using M = typename Golden::Message;
  Decoder decoder;
  const Counts counts = push_all(decoder, Golden::bytes());
  REQUIRE(counts.frames == 1);
  REQUIRE(counts.bad == 0);
  CHECK(decoder.type() == uint8_t{M::kType});
  CHECK(decoder.seq() == Golden::seq());
  REQUIRE(decoder.body_size() >= uint8_t{M::kBytes});
  ByteReader in(decoder.body(), decoder.body_size());
  M message{};
  message.read(in);
  CHECK(in.ok());
  std::vector<typename Golden::Item> items;
  while (in.left() > 0) {
    items.emplace_back();
    items.back().read(in);
  }
  CHECK(in.ok());
  CHECK(items.size() == Golden::items().size());
  // The encoder, checked above against the fields, is one to one: equal bytes are equal fields.
  CHECK(encode(message, Golden::seq(), items) == Golden::bytes());
}

TEST_CASE("signed fields keep their sign") {
  Decoder decoder;
  REQUIRE(push_all(decoder, golden_pairs_three::bytes()).frames == 1);
  ByteReader in(decoder.body(), decoder.body_size());
  Pairs header{};
  header.read(in);
  PairsItem items[3];
  for (PairsItem& item : items) item.read(in);
  CHECK(items[0].shunt == 10000);
  CHECK(items[1].shunt == -1);
  CHECK(items[2].shunt == -32000);
  CHECK(items[2].bus == 8000);
  CHECK(in.ok());
  CHECK(in.left() == 0);
}

TEST_CASE("a reader past the end says so and gives zero") {
  const uint8_t data[] = {1, 2, 3};
  ByteReader in(data, 3);
  CHECK(in.get16() == 0x0201);
  CHECK(in.get16() == 0x0003);
  CHECK_FALSE(in.ok());
}

TEST_CASE("empty frames between delimiters are nothing, not faults") {
  Decoder decoder;
  const Counts counts = push_all(decoder, {0, 0, 0});
  CHECK(counts.frames == 0);
  CHECK(counts.bad == 0);
}

TEST_CASE("after noise the next delimiter starts afresh") {
  Decoder decoder;
  std::vector<uint8_t> bytes = {0x55, 0xAA, 0xFF, 0x03, 0x00};
  const std::vector<uint8_t> good = golden_configure_pairs::bytes();
  bytes.insert(bytes.end(), good.begin(), good.end());
  const Counts counts = push_all(decoder, bytes);
  CHECK(counts.frames == 1);
  CHECK(counts.bad == 1);
  Configure configure{};
  REQUIRE(decoder.read(&configure));
  CHECK(configure.mode == static_cast<uint8_t>(Mode::pairs));
  CHECK(configure.samples_per_frame == 16);
}

TEST_CASE("a frame longer than the buffer is bad, and the buffer is not overrun") {
  FrameDecoder<24> decoder;  // a device's: commands are short
  CHECK(push_all(decoder, golden_pairs_three::bytes()).bad == 1);
  CHECK(push_all(decoder, golden_clock::bytes()).frames == 1);
}

TEST_CASE("a message is refused when the length is another's") {
  Decoder decoder;
  REQUIRE(push_all(decoder, golden_clock::bytes()).frames == 1);
  Configure configure{};
  CHECK_FALSE(decoder.read(&configure));
}

TEST_CASE("every single flipped bit and every lost byte is noticed") {
  const std::vector<uint8_t> good = golden_pairs_three::bytes();
  for (size_t i = 0; i + 1 < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> bytes = good;
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ (1 << bit));
      Decoder decoder;
      CHECK(push_all(decoder, bytes).frames == 0);
    }
    std::vector<uint8_t> bytes = good;
    bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(i));
    Decoder decoder;
    CHECK(push_all(decoder, bytes).frames == 0);
  }
}

TEST_CASE("the longest frames, with no zero and with zeros only, cost one byte and the delimiter") {
  for (uint8_t fill : {0x00, 0x11, 0xFF}) {
    Sink sink;
    FrameEncoder<Sink> encoder(sink);
    const uint8_t body = kMaxFrameBytes - kHeaderBytes - kCrcBytes;
    encoder.begin(0x11, 0x11111111);
    for (uint8_t i = 0; i < body; ++i) encoder.put8(fill);
    encoder.end();
    CHECK(sink.bytes.size() == encoded_bytes(body));
    Decoder decoder;
    CHECK(push_all(decoder, sink.bytes).frames == 1);
    CHECK(decoder.body_size() == body);
    CHECK(decoder.body()[body - 1] == fill);
  }
}

TEST_CASE("only whole blocks are published, so the line never overtakes the encoder") {
  Sink sink;
  FrameEncoder<Sink> encoder(sink);
  encoder.begin(0x11, 0x11111111);
  CHECK(sink.bytes.empty());
  encoder.put8(0);
  CHECK(sink.bytes.size() == 6);  // code byte, type, seq
  encoder.put8(1);
  CHECK(sink.bytes.size() == 6);
}

TEST_CASE("random bytes never crash the decoder nor leave it stuck") {
  std::mt19937 random(7);
  Decoder decoder;
  for (int i = 0; i < 200000; ++i) decoder.push(static_cast<uint8_t>(random() % 8 ? random() : 0));
  decoder.push(0);
  CHECK(push_all(decoder, encode(Clock{42}, 1)).frames == 1);
}
