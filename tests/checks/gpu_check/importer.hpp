/// The second process of the probe: imports GPU memory from a descriptor and uses it once.
///
/// The probe passes two descriptors: 3 is a socket for the result, 4 is the memory. The process
/// ends when it is killed or the socket is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::gpu_check {

enum class ImportMode : std::uint8_t {
  Share,          ///< Expects kMagicWord and writes kReplyWord after it.
  WriteReadOnly,  ///< Maps the memory read-only and tries to write.
  KeepWriting,    ///< Begins a kernel that writes the memory for seconds.
};

inline constexpr ImportMode kImportModes[] = {ImportMode::Share, ImportMode::WriteReadOnly,
                                              ImportMode::KeepWriting};

/// The program's hidden option that selects the mode; its value is the size in bytes.
constexpr std::string_view option_of(ImportMode mode) {
  switch (mode) {
    case ImportMode::Share:
      return "--import";
    case ImportMode::WriteReadOnly:
      return "--import-read-only";
    case ImportMode::KeepWriting:
      return "--import-keep-writing";
  }
  return "";
}

inline constexpr int kImporterSocket = 3;
inline constexpr int kImporterMemory = 4;
inline constexpr std::uint32_t kMagicWord = 0x1ea5e401;
inline constexpr std::uint32_t kReplyWord = 0x1ea5e402;

/// The result, one byte on the socket.
enum class ImportResult : char {
  Done = 'd',
  CannotImport = 'i',
  WrongContent = 'w',
  Refused = 'r'
};

/// Returns the exit code.
int run_importer(ImportMode what, int ordinal, std::size_t size_bytes);

}  // namespace leasehold::gpu_check
