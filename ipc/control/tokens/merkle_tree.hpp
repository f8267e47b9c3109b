/// A Merkle tree over the records of the audit chain, and proofs about it.
///
/// Leaf i is the i-th record that was ever appended, counted from 0; its sequence number may be
/// larger, because sequence numbers skip records that were cut off. Leaf and node hashes have
/// different prefixes, so no node can be shown as a leaf. Subtrees are named by the leaves
/// [begin, end) below them; a complete one has a power of two of leaves.
/// Pure. Threads: any. Source: RFC 9162, section 2.1; SHA-256 by libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::audit {

using Hash = std::array<std::uint8_t, 32>;

/// The inverse of to_hex (common/hex.hpp). Returns nothing for anything but 64 lower-case digits.
std::optional<Hash> hash_from_hex(std::string_view text);

/// The leaf of a record with this hash.
Hash leaf_of(const Hash& record);
Hash node_of(const Hash& left, const Hash& right);

/// The part of a tree that later leaves and roots need: the roots of its largest complete subtrees,
/// from left to right, one for each binary digit 1 of the size.
class MerkleFrontier {
 public:
  MerkleFrontier() = default;
  /// `leaf`: see leaf_of.
  void append(const Hash& leaf);
  std::uint64_t size() const { return size_; }
  /// The root of the whole tree. The empty tree has the hash of no bytes.
  Hash root() const;
  /// The root of the complete subtree [begin, end), if it is one of those kept here.
  std::optional<Hash> subtree(std::uint64_t begin, std::uint64_t end) const;

  /// `SIZE:` and the hex digits of all roots. `from_text` returns nothing for any other text.
  std::string text() const;
  static std::optional<MerkleFrontier> from_text(std::string_view text);
  bool operator==(const MerkleFrontier&) const = default;

 private:
  std::uint64_t size_ = 0;
  std::vector<Hash> roots_;
};

/// The hashes of a proof, in the order in which its check needs them.
using Proof = std::vector<Hash>;

/// A tree whose first leaves are gone: enough for the root of each size that it has had since, and
/// for proofs about the leaves that are left.
class MerkleTree {
 public:
  /// `removed`: the tree of the leaves that are gone.
  explicit MerkleTree(MerkleFrontier removed) : removed_(std::move(removed)) {}
  void append(const Hash& leaf) { leaves_.push_back(leaf); }
  std::uint64_t removed() const { return removed_.size(); }
  std::uint64_t size() const { return removed_.size() + leaves_.size(); }

  // Preconditions: removed() <= size <= this->size(). Time: linear in the leaves.

  Hash root(std::uint64_t size) const;
  /// Proves several leaves at once: the roots of the largest subtrees without any of `leaves`, from
  /// left to right. `leaves`: ascending indices in [removed(), size).
  Proof multiproof(std::span<const std::uint64_t> leaves, std::uint64_t size) const;
  /// Proves that the tree of `old_size` leaves is the beginning of that of `size` leaves.
  /// Precondition: removed() <= old_size, 0 < old_size <= size. Source: section 2.1.4.1.
  Proof consistency(std::uint64_t old_size, std::uint64_t size) const;

 private:
  Hash subtree(std::uint64_t begin, std::uint64_t end) const;

  MerkleFrontier removed_;
  std::vector<Hash> leaves_;
};

struct Leaf {
  std::uint64_t index = 0;
  Hash hash;  ///< See leaf_of.
};

/// The root that a multiproof leads to. Returns nothing if the indices do not ascend or reach
/// `size`, or if the proof has too few or too many hashes.
std::optional<Hash> root_of(std::uint64_t size, std::span<const Leaf> leaves, const Proof& proof);

/// A size of the tree and its root.
struct TreeRoot {
  std::uint64_t size = 0;
  Hash hash{};
  bool operator==(const TreeRoot&) const = default;
};
/// True if `proof` shows that the tree `old` is the beginning of the tree `now`. The empty tree is
/// the beginning of each tree, without hashes. Source: section 2.1.4.2.
bool is_consistent(const TreeRoot& old, const TreeRoot& now, const Proof& proof);

}  // namespace leasehold::audit
