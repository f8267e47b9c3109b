/// A system whose model has the chat template of a test.
#pragma once

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "tests/support/gguf_builder.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {

inline constexpr std::size_t kGrid = 4096;  // a multiple of every alignment that a file may have

/// Copies the bundled model with a chat template as its first entry. A template comment pads the
/// entry to the grid, so that the rest of the file stays aligned.
inline std::string model_with_template(const std::string& text) {
  std::string model = file_bytes(bundled_model_path());
  const std::string key = raw_string("tokenizer.chat_template") + raw(std::uint32_t{8});
  const std::size_t size = key.size() + raw_string(text + "{##}").size();
  const std::string filler((kGrid - size % kGrid) % kGrid, ' ');
  constexpr std::size_t kCountAt = 16, kEntriesAt = 24;
  const auto n_entries = static_cast<std::uint64_t>(static_cast<unsigned char>(model[kCountAt]));
  REQUIRE(n_entries < 255);
  model.replace(kCountAt, 8, raw(n_entries + 1));
  return model.insert(kEntriesAt, key + raw_string(text + "{#" + filler + "#}"));
}

struct ChatSystem : System {
  explicit ChatSystem(const std::string& text)
      : System({.start_worker = false, .model_name = "chat.gguf"}) {
    std::ofstream(directory() / "chat.gguf", std::ios::binary) << model_with_template(text);
    start_ready_worker("w1");
    admit("ann");
  }
};

}  // namespace leasehold::testing
