/// The card's work: streams of items, run one at a time by one thread.
///
/// Items of a stream run in order. Between streams, priority decides, then turns. Lifetime: the
/// executor is never destroyed; a stream lives until it is destroyed and drained, a mark as long as
/// it is referenced. Threads: any.
#pragma once

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::fake_cuda {

/// One recording of an event.
struct Mark {
  bool done = false;
  std::chrono::steady_clock::time_point at;
};

struct Item;
using Items = std::deque<Item>;

/// An item of a stream. Exactly one of work, more, record and wait is set.
struct Item {
  std::function<CUresult()> work = {};  ///< Work of the card; a test may hold it.
  std::function<Items()> more = {};     ///< Items that replace this one when the stream reaches it.
  std::shared_ptr<Mark> record = {};
  std::shared_ptr<const Mark> wait = {};
  std::string kernel = {};  ///< Counted by this name when the work is done.
};

struct Stream {
  Items items;
  int priority = 0;
  bool busy = false;
  bool destroyed = false;
  std::uint64_t last_turn = 0;
};

class Executor {
 public:
  static Executor& get();

  Stream* create_stream(int priority);
  /// Queued items still run. Returns false for an unknown stream.
  bool destroy_stream(Stream* stream);
  bool knows(const Stream* stream);
  Stream* default_stream() { return default_; }

  void queue(Stream* stream, Item item);
  /// Waits until the stream (null: every stream) is empty or the device is lost.
  void wait_empty(const Stream* stream);
  void wait_done(const std::shared_ptr<const Mark>& mark);
  bool is_done(const std::shared_ptr<const Mark>& mark);

  void hold();
  std::uint64_t run(std::uint64_t n);
  void release();
  std::uint64_t kernel_count(const char* kernel);
  void clear_all();

 private:
  Executor();
  void live();
  /// Returns a stream whose first item can run now, or null.
  Stream* next();
  bool may_begin(const Item& item) const;
  void step(std::unique_lock<std::mutex>& lock, Stream& stream);
  bool is_empty(const Stream* stream) const;
  void erase_destroyed();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Stream> streams_;
  Stream* default_ = nullptr;
  bool held_ = false;
  std::uint64_t permits_ = 0;
  bool busy_ = false;
  bool idle_ = false;  ///< No item can run now.
  std::uint64_t turns_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
  std::uint64_t all_kernels_ = 0;
};

/// Returns the stream of a handle, null for an unknown one. Handle null is the default stream,
/// which here does not wait for other streams.
Stream* stream_of(CUstream handle);

}  // namespace leasehold::fake_cuda
