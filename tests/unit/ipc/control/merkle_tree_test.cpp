#include "ipc/control/tokens/merkle_tree.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "common/hex.hpp"
#include "common/random.hpp"

using namespace leasehold;
using audit::Hash;
using audit::Leaf;
using audit::MerkleFrontier;
using audit::MerkleTree;
using audit::Proof;
using audit::TreeRoot;

namespace {

constexpr std::uint64_t kSizes = 130;  // two levels above a byte of leaves, and odd sizes between

Leaf leaf(std::uint64_t index) {
  Hash record{};
  for (std::size_t i = 0; i < 8; ++i) record[i] = static_cast<std::uint8_t>(index >> (8 * i));
  return {index, audit::leaf_of(record)};
}

/// The definitions of RFC 9162, section 2.1, without thought for speed.
std::uint64_t split(std::uint64_t size) {
  std::uint64_t k = 1;
  while (2 * k < size) k *= 2;
  return k;
}
Hash tree_hash(std::uint64_t begin, std::uint64_t size) {
  if (size == 1) return leaf(begin).hash;
  const std::uint64_t k = split(size);
  return audit::node_of(tree_hash(begin, k), tree_hash(begin + k, size - k));
}
Proof subproof(std::uint64_t m, std::uint64_t begin, std::uint64_t size, bool is_known) {
  if (m == size) return is_known ? Proof{} : Proof{tree_hash(begin, size)};
  const std::uint64_t k = split(size);
  Proof proof =
      m <= k ? subproof(m, begin, k, is_known) : subproof(m - k, begin + k, size - k, false);
  proof.push_back(m <= k ? tree_hash(begin + k, size - k) : tree_hash(begin, k));
  return proof;
}

MerkleFrontier frontier_of(std::uint64_t size) {
  MerkleFrontier frontier;
  for (std::uint64_t i = 0; i < size; ++i) frontier.append(leaf(i).hash);
  return frontier;
}
MerkleTree tree_of(std::uint64_t removed, std::uint64_t size) {
  MerkleTree tree(frontier_of(removed));
  for (std::uint64_t i = removed; i < size; ++i) tree.append(leaf(i).hash);
  return tree;
}

struct Chosen {
  std::vector<std::uint64_t> indices;
  std::vector<Leaf> leaves;
};
/// About one of `in` leaves in [removed, size).
Chosen choose(SeededRandom& random, std::uint64_t removed, std::uint64_t size, std::uint64_t in) {
  Chosen chosen;
  for (std::uint64_t i = removed; i < size; ++i) {
    if (random.below(in) != 0) continue;
    chosen.indices.push_back(i);
    chosen.leaves.push_back(leaf(i));
  }
  return chosen;
}

}  // namespace

TEST_CASE("merkle tree: hashes are those of RFC 9162, with its prefixes") {
  // SHA-256 of no bytes, of 00 and 32 zeros, and of 01 and twice that hash.
  CHECK(to_hex(MerkleFrontier().root()) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const Hash zero = audit::leaf_of({});
  CHECK(to_hex(zero) == "7f9c9e31ac8256ca2f258583df262dbc7d6f68f2a03043d5c99a4ae5a7396ce9");
  CHECK(to_hex(audit::node_of(zero, zero)) ==
        "a4b8c7873a49d5d53af0b2a0202486483020d95935d763edc4ef2f602200d8de");
}

TEST_CASE(
    "merkle tree: the root at each size is that of the definition, also when the tree's "
    "beginning is removed") {
  MerkleFrontier frontier;
  for (std::uint64_t size = 1; size <= kSizes; ++size) {
    frontier.append(leaf(size - 1).hash);
    const Hash expected = tree_hash(0, size);
    CHECK(frontier.root() == expected);
    for (const std::uint64_t removed : {std::uint64_t{0}, size / 3, size / 2, size - 1, size}) {
      const MerkleTree tree = tree_of(removed, kSizes);
      CHECK(tree.root(size) == expected);
    }
  }
}

TEST_CASE("merkle tree: a frontier is read back from its text, and no other text is accepted") {
  for (const std::uint64_t size : {0u, 1u, 2u, 7u, 128u, 129u}) {
    const MerkleFrontier frontier = frontier_of(size);
    const std::string text = frontier.text();
    CHECK(MerkleFrontier::from_text(text) == frontier);
    for (std::size_t at = 0; at < text.size(); ++at) {
      std::string other = text;
      other[at] ^= 0x20;
      CHECK_FALSE(MerkleFrontier::from_text(other).has_value());
    }
    CHECK_FALSE(MerkleFrontier::from_text(text + "0").has_value());
    CHECK_FALSE(MerkleFrontier::from_text(text.substr(0, text.size() - 1)).has_value());
  }
  CHECK_FALSE(MerkleFrontier::from_text("").has_value());
  CHECK_FALSE(MerkleFrontier::from_text("00:").has_value());
}

TEST_CASE("merkle tree: a multiproof leads to the root for its own leaves, size and hashes only") {
  SeededRandom random(7);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t size = 1 + random() % kSizes;
    const std::uint64_t removed = random() % (size + 1);
    const MerkleTree tree = tree_of(removed, size + random() % 3);
    Chosen chosen = choose(random, removed, size, 1 + random() % 9);
    CAPTURE(size, removed, chosen.indices);
    const Proof proof = tree.multiproof(chosen.indices, size);
    const Hash root = tree_hash(0, size);
    CHECK(audit::root_of(size, chosen.leaves, proof) == root);

    for (std::size_t i = 0; i < proof.size(); ++i) {
      Proof forged = proof;
      forged[i][random() % 32] ^= static_cast<std::uint8_t>(1u << random() % 8);
      CHECK(audit::root_of(size, chosen.leaves, forged) != root);
    }
    Proof longer = proof;
    longer.push_back(root);
    CHECK_FALSE(audit::root_of(size, chosen.leaves, longer).has_value());
    if (!proof.empty()) {
      const Proof shorter(proof.begin(), proof.end() - 1);
      CHECK_FALSE(audit::root_of(size, chosen.leaves, shorter).has_value());
    }
    if (chosen.leaves.empty()) continue;
    const std::size_t at = random() % chosen.leaves.size();
    Chosen other = chosen;
    other.leaves[at].hash[3] ^= 1;
    CHECK(audit::root_of(size, other.leaves, proof) != root);
    other = chosen;
    other.leaves.erase(other.leaves.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK(audit::root_of(size, other.leaves, proof) != root);
  }
}

TEST_CASE("merkle tree: leaves out of order, twice, or beyond the size have no root") {
  const Proof none;
  CHECK(audit::root_of(2, std::vector{leaf(0), leaf(1)}, none) == tree_hash(0, 2));
  CHECK_FALSE(audit::root_of(2, std::vector{leaf(1), leaf(0)}, none).has_value());
  CHECK_FALSE(audit::root_of(2, std::vector{leaf(0), leaf(0)}, none).has_value());
  CHECK_FALSE(audit::root_of(2, std::vector{leaf(1), leaf(2)}, none).has_value());
  CHECK_FALSE(audit::root_of(0, std::vector{leaf(0)}, none).has_value());
  CHECK(audit::root_of(0, {}, none) == MerkleFrontier().root());
  CHECK_FALSE(audit::root_of(~std::uint64_t{0}, std::vector{leaf(~std::uint64_t{0} - 1)}, none));
}

TEST_CASE("merkle tree: a multiproof of neighbours has one hash for each level at most twice") {
  const MerkleTree tree = tree_of(0, kSizes);
  std::vector<std::uint64_t> run(60);
  std::iota(run.begin(), run.end(), 33);
  CHECK(tree.multiproof(run, kSizes).size() <= 14);
}

TEST_CASE(
    "merkle tree: consistency proofs are those of the definition, and prove only their own "
    "two trees") {
  const MerkleTree tree = tree_of(0, kSizes);
  SeededRandom random(11);
  for (std::uint64_t size = 1; size <= kSizes; ++size) {
    const TreeRoot now{size, tree_hash(0, size)};
    for (std::uint64_t old_size = 1; old_size <= size; ++old_size) {
      const Proof proof = tree.consistency(old_size, size);
      REQUIRE(proof == subproof(old_size, 0, size, true));
      const TreeRoot old{old_size, tree.root(old_size)};
      REQUIRE(audit::is_consistent(old, now, proof));
      if (random() % 16 != 0) continue;
      CHECK(tree_of(random() % (old_size + 1), size).consistency(old_size, size) == proof);
      TreeRoot other = old;
      other.hash[9] ^= 4;
      CHECK_FALSE(audit::is_consistent(other, now, proof));
      other = now;
      other.hash[9] ^= 4;
      CHECK_FALSE(audit::is_consistent(old, other, proof));
      for (std::size_t i = 0; i < proof.size(); ++i) {
        Proof forged = proof;
        forged[i][random() % 32] ^= 1;
        CHECK_FALSE(audit::is_consistent(old, now, forged));
      }
      Proof longer = proof;
      longer.push_back(old.hash);
      CHECK_FALSE(audit::is_consistent(old, now, longer));
      CHECK_FALSE(audit::is_consistent({size + 1, old.hash}, now, proof));
    }
    CHECK(audit::is_consistent({0, MerkleFrontier().root()}, now, {}));
    CHECK_FALSE(audit::is_consistent({0, now.hash}, now, {}));
  }
}
