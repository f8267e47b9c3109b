/// The other process of the probe: gets a card's memory as a descriptor and does one thing with it.
///
/// Started by the probe with two descriptors: 3, a socket it reports on, and 4, the memory. It ends
/// when it is killed, or the socket is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::gpu_check {

enum class ImportMode : std::uint8_t {
  Share,          ///< Looks for kMagicWord, writes kReplyWord behind it.
  WriteReadOnly,  ///< Maps it read-only and writes all the same.
};

inline constexpr int kImporterSocket = 3;
inline constexpr int kImporterMemory = 4;
inline constexpr std::uint32_t kMagicWord = 0x1ea5e401;
inline constexpr std::uint32_t kReplyWord = 0x1ea5e402;

/// What it says on the socket: one byte.
enum class ImportResult : char {
  Done = 'd',
  CannotImport = 'i',
  WrongContent = 'w',
  Refused = 'r'
};

/// Its exit code.
int run_importer(ImportMode what, int ordinal, std::size_t size_bytes);

}  // namespace leasehold::gpu_check
