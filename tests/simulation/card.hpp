/// A card of the simulated machine: its memory, and what its driver says of it.
///
/// Memory exists while the agent has its handle, a process imports it, or the driver still takes
/// apart what an exited process had; somebody before always left something in it. Descriptors of it
/// are real ones, so that nobody but a descriptor says which memory was lent. Nothing here knows
/// what is promised: that is the judge's.
///
/// Lifetime: the schedule's. Threads: one.
#pragma once

#include <vector>

#include "common/unique_fd.hpp"
#include "tests/simulation/machine.hpp"

namespace leasehold::simulation {

class Card {
 public:
  struct Memory {
    std::uint64_t size_bytes = 0;
    const Process* agent = nullptr;  ///< Has the handle.
    int imports = 0;                 ///< Of processes that live.
    int exiting = 0;                 ///< Of processes that have exited.
    bool kept = false;               ///< The driver never gets done with it.
    bool abandoned = false;          ///< Nobody waits for it to come back any more.
    bool zero = false;
    bool exists() const { return agent != nullptr || imports > 0 || exiting > 0; }
  };

  Card(Machine& machine, std::uint64_t total_bytes)
      : machine_(&machine), total_bytes_(total_bytes), noisy_(machine.one_in(4)) {}

  // The driver's calls of an agent.
  std::optional<std::size_t> allocate(std::uint64_t size_bytes, const Process& agent);
  void clear(std::size_t memory) { memories_.at(memory).zero = true; }
  void release(std::size_t memory) { memories_.at(memory).agent = nullptr; }
  std::uint64_t free_bytes() const;
  std::uint64_t total_bytes() const { return total_bytes_; }
  UniqueFd descriptor(std::size_t memory) const;
  static std::size_t memory_of(const UniqueFd& descriptor);

  // What processes do with it.
  void import(std::size_t memory) { ++memories_.at(memory).imports; }
  void unmap(std::size_t memory) { --memories_.at(memory).imports; }
  void write(std::size_t memory) { memories_.at(memory).zero = false; }
  /// The importer has exited; the driver may need a while, or for ever.
  void importer_exited(std::size_t memory);
  void agent_died(const Process& agent);
  void give_up(std::size_t memory) { memories_.at(memory).abandoned = true; }

  const Memory& at(std::size_t memory) const { return memories_.at(memory); }

  /// The driver gets done with one import of a process that has exited. False when there is none.
  bool finish_teardown();
  /// Another program takes memory, or gives some back.
  bool disturb();
  /// Whether more came back than what was released and is waited for: the free figure may hide what
  /// is kept.
  bool free_figure_unreliable() const { return free_figure_unreliable_; }
  std::uint32_t agents_lost() const { return agents_lost_; }

 private:
  Machine* machine_;
  std::uint64_t total_bytes_;
  std::uint64_t others_bytes_ = 0;
  bool noisy_;
  bool free_figure_unreliable_ = false;
  std::uint32_t agents_lost_ = 0;
  std::vector<Memory> memories_;
};

}  // namespace leasehold::simulation
