"""Build script of the stand-in native platform: g++ from PATH."""

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
Default(env.BuildProgram())
