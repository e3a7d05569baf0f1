#pragma once

#include <cstddef>

namespace troupe::os {

/// product = left·right, of n columns and n rows each, by columns; by one thread.
void multiply(const float* left, const float* right, float* product, std::size_t n);

} // namespace troupe::os
