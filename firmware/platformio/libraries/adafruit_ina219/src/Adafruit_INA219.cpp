#include "Adafruit_INA219.h"

namespace {

// TI data sheet SBOS448G, 8.6.1 (registers) and 8.6.2.1 (configuration).
constexpr uint8_t kConfiguration = 0;
constexpr uint8_t kShuntVoltage = 1;
constexpr uint8_t kBusVoltage = 2;
constexpr uint8_t kCurrent = 4;
constexpr uint8_t kCalibration = 5;
constexpr uint16_t k32V = 0x2000;
constexpr uint16_t k320mV = 0x1800;
constexpr uint16_t k12BitBoth = 0x0198;
constexpr uint16_t kContinuous = 0x0007;

}  // namespace

Adafruit_INA219::Adafruit_INA219(uint8_t addr) : address_(addr) {}

bool Adafruit_INA219::begin(TwoWire* theWire) {
  wire_ = theWire;
  wire_->begin();
  wire_->beginTransmission(address_);
  if (wire_->endTransmission() != 0) return false;
  setCalibration_32V_2A();
  return success_;
}

void Adafruit_INA219::setCalibration_32V_2A() {
  calibrate(4096, k32V | k320mV | k12BitBoth | kContinuous, 10);  // 0.1 mA a code
}

void Adafruit_INA219::setCalibration_32V_1A() {
  calibrate(10240, k32V | k320mV | k12BitBoth | kContinuous, 25);  // 0.04 mA a code
}

void Adafruit_INA219::setCalibration_16V_400mA() {
  calibrate(8192, k12BitBoth | kContinuous, 20);  // 0.05 mA a code
}

float Adafruit_INA219::getBusVoltage_V() {
  return static_cast<float>((read(kBusVoltage) >> 3) * 4) * 0.001f;
}

float Adafruit_INA219::getShuntVoltage_mV() {
  return static_cast<float>(static_cast<int16_t>(read(kShuntVoltage))) * 0.01f;
}

float Adafruit_INA219::getCurrent_mA() {
  write(kCalibration, calibration_);
  return static_cast<float>(static_cast<int16_t>(read(kCurrent))) / codes_per_ma_;
}

bool Adafruit_INA219::success() { return success_; }

void Adafruit_INA219::calibrate(uint16_t calibration, uint16_t configuration, float codes_per_ma) {
  calibration_ = calibration;
  codes_per_ma_ = codes_per_ma;
  write(kCalibration, calibration);
  write(kConfiguration, configuration);
}

bool Adafruit_INA219::write(uint8_t reg, uint16_t value) {
  wire_->beginTransmission(address_);
  wire_->write(reg);
  wire_->write(static_cast<uint8_t>(value >> 8));
  wire_->write(static_cast<uint8_t>(value));
  success_ = wire_->endTransmission() == 0;
  return success_;
}

uint16_t Adafruit_INA219::read(uint8_t reg) {
  wire_->beginTransmission(address_);
  wire_->write(reg);
  success_ = wire_->endTransmission(false) == 0 &&
             wire_->requestFrom(address_, static_cast<uint8_t>(2)) == 2;
  if (!success_) return 0;
  const uint8_t high = static_cast<uint8_t>(wire_->read());
  return static_cast<uint16_t>((high << 8) | static_cast<uint8_t>(wire_->read()));
}
