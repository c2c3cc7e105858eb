// Disables interrupts during its lifetime, for the few places where the main loop reads or writes
// more than one byte that an interrupt also uses. On an AVR locks may be nested, elsewhere on the
// Arduino framework they must not be; on a desktop it does nothing. Keep it short: the I2C bus may
// have to wait for its end.
#ifndef OPJOULE_CLOCK_INTERRUPT_LOCK_H_
#define OPJOULE_CLOCK_INTERRUPT_LOCK_H_

#include <stdint.h>

#define OPJOULE_INLINE inline __attribute__((always_inline))
// Keeps a large local variable off the stack of the caller.
#define OPJOULE_NOINLINE __attribute__((noinline))

#ifdef __AVR__
#include <avr/interrupt.h>
#include <avr/io.h>
#elif defined(ARDUINO)
#include <Arduino.h>
#endif

namespace opjoule {

class InterruptLock {
 public:
#ifdef __AVR__
  OPJOULE_INLINE InterruptLock() : status_(SREG) { cli(); }
  OPJOULE_INLINE ~InterruptLock() {
    __asm__ volatile("" ::: "memory");
    SREG = status_;
  }
#elif defined(ARDUINO)
  InterruptLock() : status_(0) { noInterrupts(); }
  ~InterruptLock() { interrupts(); }
#else
  InterruptLock() : status_(0) {}
  ~InterruptLock() { static_cast<void>(status_); }
#endif
  InterruptLock(const InterruptLock&) = delete;
  InterruptLock& operator=(const InterruptLock&) = delete;

 private:
  uint8_t status_;
};

}  // namespace opjoule

#endif  // OPJOULE_CLOCK_INTERRUPT_LOCK_H_
