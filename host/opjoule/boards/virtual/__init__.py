"""A virtual board: a complete aarch64 Debian machine under qemu-system, for function, never for energy or speed."""
