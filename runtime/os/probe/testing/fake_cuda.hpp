#pragma once

/// Of the fake driver: the number of the device whose context is current.
extern "C" int fake_current_device();
/// A number that the test has put into the environment; -1 if it has not.
extern "C" int fake_setting(const char* name);
/// Not 0: what was begun on a device never ends.
extern "C" int fake_is_busy;
