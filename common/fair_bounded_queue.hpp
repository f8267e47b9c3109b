/// A bounded queue that owners share. When it is full, a new entry displaces the oldest entry of
/// the owner with the most entries, so a busy owner does not displace the entries of others. Each
/// key is in the queue once.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "common/fair_shares.hpp"

namespace leasehold {

template <class Owner, class Key, class Value = std::monostate>
class FairBoundedQueue {
 public:
  struct Entry {
    Owner owner;
    Key key;
    Value value{};
  };

  explicit FairBoundedQueue(std::size_t capacity) : held_(capacity) {}

  /// Adds an entry. If the key is queued already, its entry gets the new value and keeps its place
  /// and owner. Returns the entry that was dropped, if any; of owners with equally many entries,
  /// the lowest one loses its oldest.
  std::optional<Entry> push(Entry entry) {
    const auto place = places_.find(entry.key);
    if (place != places_.end()) {
      entries_.at(place->second).value = std::move(entry.value);
      return std::nullopt;
    }
    places_.emplace(entry.key, ++last_);
    held_.take(entry.owner);
    of_owner_[entry.owner].insert(last_);
    entries_.emplace_hint(entries_.end(), last_, std::move(entry));
    if (size() <= held_.capacity()) return std::nullopt;
    return remove(entries_.find(*of_owner_.at(held_.largest()).begin()));
  }

  /// False when the queue has no such key.
  bool erase(const Key& key) {
    const auto place = places_.find(key);
    if (place == places_.end()) return false;
    (void)remove(entries_.find(place->second));
    return true;
  }

  bool contains(const Key& key) const { return places_.contains(key); }
  /// The owner of a key, or null.
  const Owner* owner_of(const Key& key) const {
    const auto place = places_.find(key);
    return place == places_.end() ? nullptr : &entries_.at(place->second).owner;
  }
  std::size_t size() const { return entries_.size(); }
  std::size_t capacity() const { return held_.capacity(); }

  /// The oldest keys, up to `count`.
  std::vector<Key> front(std::size_t count) const {
    std::vector<Key> keys;
    for (auto entry = entries_.begin(); entry != entries_.end() && keys.size() < count; ++entry)
      keys.push_back(entry->second.key);
    return keys;
  }

  /// Takes all, the oldest first.
  std::vector<Entry> take_all() {
    std::vector<Entry> taken;
    taken.reserve(size());
    for (auto& [number, entry] : entries_) taken.push_back(std::move(entry));
    *this = FairBoundedQueue(capacity());
    return taken;
  }

 private:
  using Entries = std::map<std::uint64_t, Entry>;

  Entry remove(typename Entries::iterator found) {
    Entry entry = std::move(found->second);
    places_.erase(entry.key);
    held_.give_back(entry.owner);
    const auto owner = of_owner_.find(entry.owner);
    owner->second.erase(found->first);
    if (owner->second.empty()) of_owner_.erase(owner);
    entries_.erase(found);
    return entry;
  }

  Entries entries_;  // by number, the oldest first
  std::unordered_map<Key, std::uint64_t> places_;
  // the numbers of each owner's entries; no set is empty
  std::map<Owner, std::set<std::uint64_t>> of_owner_;
  FairShares<Owner> held_;
  std::uint64_t last_ = 0;
};

}  // namespace leasehold
