/// What operators do with adapters: register, replace, remove, pin, load, unload, revoke, change
/// quotas, and overwrite files.
///
/// A file belongs to one owner for ever, as its path says, so its content says whose it is.
#pragma once

#include <array>
#include <string>

#include "tests/simulation/model_broker.hpp"

namespace leasehold::simulation {

/// An adapter, and its first owner; empty: shared. A name may get another owner once it is removed.
struct KnownAdapter {
  const char* name;
  const char* owner;
};
inline constexpr std::array<KnownAdapter, 3> kAdapters{
    {{"x", "a"}, {"y", "b"}, {kSharedAdapter, ""}}};

class AdapterOperator {
 public:
  explicit AdapterOperator(Dependencies& deps) : deps_(deps) {}

  /// Registers all adapters, and gives their owners quotas.
  void begin();
  /// Publishes a text under an adapter, mostly the shared one.
  void publish(const std::string& worker);
  /// Publishes a text wherever the shared adapter is loaded, and replaces the adapter meanwhile.
  void replace_while_published();
  void act(const std::string& worker);
  /// Repairs what is missing or damaged, and raises the quotas.
  void finish();
  /// Lets idle adapters leave, which may hold the quota that another worker needs, and ends the
  /// published texts, which may hold the memory that requests need.
  void make_room(const std::string& worker);

 private:
  Broker& broker() const { return *deps_.persistent.broker; }
  void add(const KnownAdapter& adapter);
  void overwrite(const KnownAdapter& adapter);
  void change_quotas();
  void admit(const char* tenant, std::uint32_t adapters, std::uint64_t extents);
  bool is_sound(const KnownAdapter& adapter) const;

  Dependencies& deps_;  ///< Of the schedule.
};

}  // namespace leasehold::simulation
