/// Texts of the simulated machine. A token is made from all tokens before it, so a text that
/// continues from anything but its own tokens is another text from there on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace leasehold::simulation {

inline constexpr std::uint32_t kTextTokens = 8;

/// The beginning of one text, up to all of it.
struct Text {
  std::uint64_t id = 0;  ///< Of the request. Ids of different tenants differ.
  /// The content of the adapter that computed the tokens; 0: the base model, or no token yet.
  std::uint64_t adapter = 0;
  std::uint32_t size = 0;
  std::array<std::uint32_t, kTextTokens> tokens{};  ///< By position.

  bool is_whole() const { return size == kTextTokens; }
  std::span<const std::uint32_t> all() const { return std::span(tokens).first(size); }
  void append(std::uint32_t token) { tokens[size++] = token; }
  /// True if another token may be computed with an adapter of this content. The tokens of one
  /// version are not continued under another.
  bool may_go_on_under(std::uint64_t content) const { return size == 0 || adapter == content; }
  /// The next token of the undisturbed text.
  std::uint32_t next() const {
    std::uint64_t mixed = id + adapter * 0xbf58476d1ce4e5b9;
    for (const std::uint32_t token : all()) mixed = (mixed ^ token) * 0x9e3779b97f4a7c15;
    return static_cast<std::uint32_t>(mixed >> 32) + size;
  }
  bool begins(const Text& other) const {
    return id == other.id && size <= other.size && may_go_on_under(other.adapter) &&
           std::ranges::equal(all(), other.all().first(size));
  }
};

/// The record of a text in KV memory: two slots, written in turn (worker/kv/sequence_record.hpp).
class TextRecord {
 public:
  /// The older slot is being written; a worker that dies now leaves it torn.
  void begin_write(const Text& text) {
    if (slots_[newest_] && slots_[newest_]->text.id != text.id)
      slots_ = {};  // a new header clears both
    newest_ = 1 - newest_;
    Slot& slot = slots_[newest_].emplace(Slot{.text = text, .is_torn = true});
    slot.text.tokens[slot.text.size - 1] ^= 1;
  }
  void finish_write(const Text& text) { slots_[newest_] = Slot{.text = text, .is_torn = false}; }

  bool is_torn() const { return slots_[newest_] && slots_[newest_]->is_torn; }
  /// The text of the newest slot with a right checksum; null without one. Both slots are torn after
  /// two workers died in their first commits.
  const Text* checked() const {
    for (const std::size_t slot : {newest_, 1 - newest_}) {
      if (slots_[slot] && !slots_[slot]->is_torn) return &slots_[slot]->text;
    }
    return nullptr;
  }
  /// The same for a reader that computes no checksum.
  const Text* unchecked() const { return slots_[newest_] ? &slots_[newest_]->text : nullptr; }

 private:
  struct Slot {
    Text text;
    bool is_torn = false;
  };
  std::array<std::optional<Slot>, 2> slots_;
  std::size_t newest_ = 1;
};

/// Its request outlives the connection and the process of its tenant.
inline bool is_resumable(std::uint64_t text) {
  return text % 4 != 0;
}

}  // namespace leasehold::simulation
