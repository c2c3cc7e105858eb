// Stand-in for the Adafruit INA219 library 1.2 where PlatformIO's registry cannot be reached: the
// part of its documented interface that OpJoule uses, with the same register traffic (each read is
// a pointer write, a repeated START and two bytes; each calibration is two register writes). Own
// code; a PlatformIO with its registry never sees it.
#ifndef OPJOULE_STAND_IN_ADAFRUIT_INA219_H_
#define OPJOULE_STAND_IN_ADAFRUIT_INA219_H_

#include <Arduino.h>
#include <Wire.h>

#define INA219_ADDRESS (0x40)

class Adafruit_INA219 {
 public:
  explicit Adafruit_INA219(uint8_t addr = INA219_ADDRESS);

  // Begins the bus and sets 32 V, 2 A. False: no chip answers.
  bool begin(TwoWire* theWire = &Wire);

  // Range of bus and shunt voltage; 12-bit shunt and bus conversions in turn.
  void setCalibration_32V_2A();
  void setCalibration_32V_1A();
  void setCalibration_16V_400mA();

  float getBusVoltage_V();
  float getShuntVoltage_mV();
  // Writes the calibration register each time, as the library does: a chip may have been reset.
  float getCurrent_mA();

  // Whether the last transfer went well.
  bool success();

 private:
  bool write(uint8_t reg, uint16_t value);
  uint16_t read(uint8_t reg);
  void calibrate(uint16_t calibration, uint16_t configuration, float codes_per_ma);

  TwoWire* wire_ = nullptr;
  float codes_per_ma_ = 0;
  uint16_t calibration_ = 0;
  uint8_t address_;
  bool success_ = false;
};

#endif  // OPJOULE_STAND_IN_ADAFRUIT_INA219_H_
