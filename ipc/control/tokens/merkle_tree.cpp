#include "ipc/control/tokens/merkle_tree.hpp"

#include <sodium.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "common/content_digest.hpp"
#include "common/expects.hpp"
#include "common/hex.hpp"

namespace leasehold::audit {
namespace {

static_assert(std::tuple_size_v<Hash> == crypto_hash_sha256_BYTES);

constexpr std::size_t kHashDigits = 2 * std::tuple_size_v<Hash>;

template <std::size_t size>
Hash sha256_of(const std::array<std::uint8_t, size>& bytes) {
  Hash hash;
  ::crypto_hash_sha256(hash.data(), bytes.data(), bytes.size());
  return hash;
}

/// Where a subtree of more than one leaf divides: its left half is the largest complete subtree
/// that leaves something on the right.
std::uint64_t middle_of(std::uint64_t begin, std::uint64_t end) {
  return begin + std::bit_floor(end - begin - 1);
}

/// Takes the hashes of a proof in order.
class Reader {
 public:
  explicit Reader(const Proof& proof) : proof_(proof) {}
  Hash next() {
    if (at_ < proof_.size()) return proof_[at_++];
    is_short_ = true;
    return {};
  }
  bool is_used_up() const { return !is_short_ && at_ == proof_.size(); }

 private:
  const Proof& proof_;
  std::size_t at_ = 0;
  bool is_short_ = false;
};

Hash root_of_subtree(std::uint64_t begin, std::uint64_t end, std::span<const Leaf> leaves,
                     Reader& proof) {
  if (leaves.empty()) return proof.next();
  if (end - begin == 1) return leaves.front().hash;
  const std::uint64_t middle = middle_of(begin, end);
  const auto right = std::ranges::lower_bound(leaves, middle, {}, &Leaf::index);
  const auto left_count = static_cast<std::size_t>(right - leaves.begin());
  const Hash left_root = root_of_subtree(begin, middle, leaves.first(left_count), proof);
  return node_of(left_root, root_of_subtree(middle, end, leaves.subspan(left_count), proof));
}

/// The roots that a consistency proof leads to for one subtree: of its leaves in the old tree, and
/// of all.
struct OldAndNew {
  Hash old_root;
  Hash new_root;
};

/// `known`: the old root, while the subtree has the first leaf and so may be the whole old tree.
OldAndNew roots_of_subtree(std::uint64_t old_size, std::uint64_t size, const Hash* known,
                           Reader& proof) {
  if (old_size == size) {
    const Hash root = known != nullptr ? *known : proof.next();
    return {root, root};
  }
  const std::uint64_t left_size = middle_of(0, size);
  if (old_size <= left_size) {
    const OldAndNew left = roots_of_subtree(old_size, left_size, known, proof);
    return {left.old_root, node_of(left.new_root, proof.next())};
  }
  const OldAndNew right = roots_of_subtree(old_size - left_size, size - left_size, nullptr, proof);
  const Hash left = proof.next();
  return {node_of(left, right.old_root), node_of(left, right.new_root)};
}

}  // namespace

std::optional<Hash> hash_from_hex(std::string_view text) {
  const auto digest = ContentDigest::from_hex(text);
  return digest ? std::optional(digest->bytes) : std::nullopt;
}

Hash leaf_of(const Hash& record) {
  std::array<std::uint8_t, 1 + sizeof(Hash)> bytes{0x00};
  std::ranges::copy(record, bytes.begin() + 1);
  return sha256_of(bytes);
}

Hash node_of(const Hash& left, const Hash& right) {
  std::array<std::uint8_t, 1 + 2 * sizeof(Hash)> bytes{0x01};
  std::ranges::copy(right, std::ranges::copy(left, bytes.begin() + 1).out);
  return sha256_of(bytes);
}

void MerkleFrontier::append(const Hash& leaf) {
  Hash root = leaf;
  for (int joined = std::countr_one(size_); joined > 0; --joined) {
    root = node_of(roots_.back(), root);
    roots_.pop_back();
  }
  roots_.push_back(root);
  ++size_;
}

Hash MerkleFrontier::root() const {
  if (roots_.empty()) return sha256_of(std::array<std::uint8_t, 0>{});
  Hash root = roots_.back();
  for (std::size_t i = roots_.size() - 1; i-- > 0;) root = node_of(roots_[i], root);
  return root;
}

std::optional<Hash> MerkleFrontier::subtree(std::uint64_t begin, std::uint64_t end) const {
  std::uint64_t at = 0;
  for (const Hash& root : roots_) {
    const std::uint64_t size = std::bit_floor(size_ - at);
    if (at == begin && at + size == end) return root;
    at += size;
  }
  return std::nullopt;
}

std::string MerkleFrontier::text() const {
  std::string text = std::to_string(size_) + ":";
  for (const Hash& root : roots_) text += to_hex(root);
  return text;
}

std::optional<MerkleFrontier> MerkleFrontier::from_text(std::string_view text) {
  MerkleFrontier frontier;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), frontier.size_);
  if (error != std::errc{}) return std::nullopt;
  const auto digits = static_cast<std::size_t>(end - text.data()) + 1;
  const auto count = static_cast<std::size_t>(std::popcount(frontier.size_));
  if (text.size() != digits + count * kHashDigits) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    const auto root = hash_from_hex(text.substr(digits + i * kHashDigits, kHashDigits));
    if (!root) return std::nullopt;
    frontier.roots_.push_back(*root);
  }
  if (frontier.text() != text) return std::nullopt;
  return frontier;
}

Hash MerkleTree::subtree(std::uint64_t begin, std::uint64_t end) const {
  if (begin >= removed_.size() && end - begin == 1) return leaves_[begin - removed_.size()];
  // A proof about leaves that are left never needs part of a subtree of `removed_`.
  if (end <= removed_.size()) {
    if (const auto kept = removed_.subtree(begin, end)) return *kept;
  }
  expects(end - begin > 1, "a proof is about leaves that were not removed");
  const std::uint64_t middle = middle_of(begin, end);
  return node_of(subtree(begin, middle), subtree(middle, end));
}

Hash MerkleTree::root(std::uint64_t size) const {
  expects(size >= removed() && size <= this->size(), "the tree has had this size");
  return size == 0 ? removed_.root() : subtree(0, size);
}

Proof MerkleTree::multiproof(std::span<const std::uint64_t> leaves, std::uint64_t size) const {
  expects(size >= removed() && size <= this->size(), "the tree has had this size");
  Proof proof;
  const auto add = [&](auto& self, std::uint64_t begin, std::uint64_t end,
                       std::span<const std::uint64_t> listed) -> void {
    if (listed.empty()) return proof.push_back(subtree(begin, end));
    if (end - begin == 1) return;
    const std::uint64_t middle = middle_of(begin, end);
    const auto right = std::ranges::lower_bound(listed, middle);
    const auto left_count = static_cast<std::size_t>(right - listed.begin());
    self(self, begin, middle, listed.first(left_count));
    self(self, middle, end, listed.subspan(left_count));
  };
  if (size > 0) add(add, 0, size, leaves);
  return proof;
}

Proof MerkleTree::consistency(std::uint64_t old_size, std::uint64_t size) const {
  expects(old_size >= removed() && old_size > 0, "the tree can still be computed");
  expects(old_size <= size && size <= this->size(), "the tree has had this size");
  Proof proof;
  std::uint64_t begin = 0;
  std::uint64_t end = size;
  // Enter the largest subtree that ends where the old tree ends, then add the siblings on the way.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> siblings;
  while (old_size < end) {
    const std::uint64_t middle = middle_of(begin, end);
    const bool is_left = old_size <= middle;
    siblings.emplace_back(is_left ? middle : begin, is_left ? end : middle);
    (is_left ? end : begin) = middle;
  }
  if (begin > 0) proof.push_back(subtree(begin, end));
  for (std::size_t i = siblings.size(); i-- > 0;)
    proof.push_back(subtree(siblings[i].first, siblings[i].second));
  return proof;
}

std::optional<Hash> root_of(std::uint64_t size, std::span<const Leaf> leaves, const Proof& proof) {
  const auto does_not_ascend = [](const Leaf& a, const Leaf& b) { return a.index >= b.index; };
  if (std::ranges::adjacent_find(leaves, does_not_ascend) != leaves.end()) return std::nullopt;
  if (!leaves.empty() && leaves.back().index >= size) return std::nullopt;
  if (size == 0) return proof.empty() ? std::optional(MerkleFrontier().root()) : std::nullopt;
  Reader reader(proof);
  const Hash root = root_of_subtree(0, size, leaves, reader);
  return reader.is_used_up() ? std::optional(root) : std::nullopt;
}

bool is_consistent(const TreeRoot& old, const TreeRoot& now, const Proof& proof) {
  if (old.size > now.size) return false;
  if (old.size == 0) return proof.empty() && old.hash == MerkleFrontier().root();
  Reader reader(proof);
  const OldAndNew roots = roots_of_subtree(old.size, now.size, &old.hash, reader);
  return reader.is_used_up() && roots.old_root == old.hash && roots.new_root == now.hash;
}

}  // namespace leasehold::audit
