/// The card's work: streams of items, run one at a time by one thread.
///
/// Items of a stream run in order, those of several streams by priority, then in turn. Lifetime:
/// the executor is never destroyed; streams live until destroyed and drained, marks as long as
/// anybody refers to them. Threads: any.
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

/// One thing in a stream. Exactly one of these is set.
struct Item {
  std::function<CUresult()> work;  ///< What the card is busy with; may be held back.
  std::function<Items()> more;     ///< Items that take this one's place when it is reached.
  std::shared_ptr<Mark> record;
  std::shared_ptr<const Mark> wait;
  std::string kernel;  ///< Of work: what is counted when it is done.
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
  /// What is queued still runs. False when there is no such stream.
  bool destroy_stream(Stream* stream);
  bool knows(const Stream* stream);
  Stream* default_stream() { return default_; }

  void queue(Stream* stream, Item item);
  /// Until the stream is empty, or all of them when null, or the device lost.
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
  /// The stream whose first item can be done now, or null.
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
  bool idle_ = false;  ///< Nothing can be done as things are.
  std::uint64_t turns_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
  std::uint64_t all_kernels_ = 0;
};

/// The stream of that handle, null for one that is none. Handle null: the default stream, which
/// waits for no other here.
Stream* stream_of(CUstream handle);

}  // namespace leasehold::fake_cuda
