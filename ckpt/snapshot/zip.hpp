#pragma once

#include <cstdint>

/// The constants of the zip format (PKWARE's APPNOTE 6.3.10) that a torch archive needs.
namespace troupe::ckpt::zip {

inline constexpr std::uint32_t header_sign = 0x04034b50;     // §4.3.7
inline constexpr std::uint32_t descriptor_sign = 0x08074b50; // §4.3.9
inline constexpr std::uint32_t entry_sign = 0x02014b50;      // §4.3.12
inline constexpr std::uint32_t end64_sign = 0x06064b50;      // §4.3.14
inline constexpr std::uint32_t locator_sign = 0x07064b50;    // §4.3.15
inline constexpr std::uint32_t end_sign = 0x06054b50;        // §4.3.16

// Sizes without names and extensions.
inline constexpr std::uint64_t header_bytes = 30;
inline constexpr std::uint64_t descriptor_bytes = 16;
inline constexpr std::uint64_t long_descriptor_bytes = 24; // with ZIP64
inline constexpr std::uint64_t entry_bytes = 46;
inline constexpr std::uint64_t end64_bytes = 56;
inline constexpr std::uint64_t locator_bytes = 20;
inline constexpr std::uint64_t end_bytes = 22;

/// In a field of 32 or 16 bits: the value stands in the ZIP64 extension.
inline constexpr std::uint32_t elsewhere_32 = 0xffffffff;
inline constexpr std::uint16_t elsewhere_16 = 0xffff;
inline constexpr std::uint16_t zip64_id = 0x0001;

/// PyTorch's own extension, whose contents are skipped: it moves the data to the next multiple of
/// the alignment. Its head is an id and a size of two bytes each.
inline constexpr std::uint16_t padding_id = 0x4246; // "FB"
inline constexpr std::uint64_t padding_head = 4;

inline constexpr std::uint16_t version_plain = 20, version_zip64 = 45;
inline constexpr std::uint16_t described = 1u << 3; ///< a descriptor follows the data
inline constexpr std::uint16_t flags_utf8 = 1u << 11, flags_described = flags_utf8 | described;
inline constexpr std::uint16_t stored = 0;
inline constexpr std::uint16_t new_year_1980 = 0x21; ///< the earliest date that zip knows

} // namespace troupe::ckpt::zip
