/// The judge of adapters. It knows what is in their memory, and trusts the books of no process:
///
/// - a text reads memory that holds the whole of one file, the one under which it began;
/// - that file is its tenant's, or shared;
/// - a version of a name has one content;
/// - a lease whose fill was never reported ends with the broker;
/// - a worker closes no adapter that a text uses;
/// - a text reads a published one only if one content computed both;
/// - the version under which the broker publishes a text computed it.
///
/// Threads: one judge per machine.
#pragma once

#include <map>
#include <set>
#include <span>

#include "tests/simulation/adapters/adapter_disk.hpp"
#include "tests/simulation/coverage.hpp"
#include "tests/simulation/judge.hpp"

namespace leasehold::simulation {

class AdapterJudge {
 public:
  /// Both outlive it.
  AdapterJudge(const AdapterDisk& disk, Coverage& coverage) : disk_(&disk), coverage_(&coverage) {}

  // Memory.
  void granted(const wire::LeaseGrant& grant, const Process& worker);
  /// Until it is written, a slice holds no content.
  void slice_begun(ExtentId extent) { contents_[extent] = kTorn; }
  void slice_written(ExtentId extent, std::uint64_t content) { contents_[extent] = content; }
  void punched(ExtentId extent) {
    contents_.erase(extent);
    published_.erase(extent);
  }
  bool is_of_adapter(ExtentId extent) const { return extents_.contains(extent); }

  // Workers.
  /// The worker is about to report that the lease's memory is filled.
  void filled(LeaseId lease, std::uint64_t content);
  void text_began(LeaseId adapter) { ++leases_.at(adapter).texts; }
  void text_ended(LeaseId adapter) { --leases_.at(adapter).texts; }
  /// A unit of a text under `content` reads the memory of the lease.
  struct Reading {
    LeaseId lease;
    std::uint64_t content = 0;
    const std::string& tenant;
  };
  void read(const Reading& reading, std::span<const ExtentId> extents) const;
  void closes(LeaseId lease) const;

  // Published texts; content 0: the base model.
  using Version = std::pair<std::string, std::uint32_t>;  ///< Of the adapter of this name.
  /// Until the text is computed, its memory holds none.
  void publishes(std::span<const ExtentId> extents);
  void published(std::span<const ExtentId> extents);
  void published(const Version& version, std::uint64_t content, std::span<const ExtentId> extents);
  /// A unit of a text under `content` reads the published text of the lease.
  void read_published(LeaseId lease, std::uint64_t content,
                      std::span<const ExtentId> extents) const;
  void died(const Process& worker);

  // Brokers.
  void broker_died();
  /// The worker is ready again at the next broker; `live`: the words of the leases that it has.
  void returned(LeaseId lease, bool is_live);

 private:
  static constexpr std::uint64_t kTorn = ~std::uint64_t{0};

  struct Watched {
    Version version;
    const Process* worker = nullptr;
    std::set<ExtentId> extents;
    bool is_filled = false;
    bool is_unfilled_at_restart = false;  ///< When a broker died.
    int texts = 0;                        ///< That run under it.
  };
  std::uint64_t content_in(ExtentId extent) const;

  const AdapterDisk* disk_;
  Coverage* coverage_;
  std::map<LeaseId, Watched> leases_;
  std::map<ExtentId, std::uint64_t> contents_;                 ///< None: zero.
  std::set<ExtentId> extents_;                                 ///< Every one that an adapter had.
  std::map<ExtentId, std::uint64_t> published_;                ///< What computed its text.
  std::map<Version, std::uint64_t> versions_;                  ///< Content by version.
  std::set<std::pair<const Process*, std::uint64_t>> loaded_;  ///< Contents once filled there.
};

}  // namespace leasehold::simulation
