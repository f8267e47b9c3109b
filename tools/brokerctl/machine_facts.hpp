/// What `brokerctl doctor` knows about the machine. A plain value, so that tests need no machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/numa_nodes.hpp"

namespace leasehold::brokerctl {

struct MachineFacts {
  std::string kernel_release;             ///< "6.1.0-28-amd64"
  std::uint64_t memlock_bytes = 0;        ///< RLIMIT_MEMLOCK; the largest number means no limit.
  bool may_lock_more = false;             ///< Root.
  std::uint64_t reserved_huge_pages = 0;  ///< HugePages_Free; not usable as ordinary memory.
  NumaNodes nodes;                        ///< Of memory, with the cores of this process.
  std::uint32_t worker_threads = 1;       ///< Default number of worker threads.
  bool is_installed = false;              ///< The unit file is in /lib or /etc/systemd/system.
  bool has_broker_user = false;           ///< leasehold
  bool has_worker_user = false;           ///< leasehold-worker
  bool has_monitor_user = false;          ///< leasehold-monitor
  std::string socket;
  bool socket_exists = false;
  std::string socket_error;  ///< Why no broker answered there; empty: one did.
  std::string state_dir;
  struct Directory {
    mode_t mode = 0;
    std::string owner;
    std::uint64_t free_bytes = 0;  ///< For users other than root.
    bool has_free_files = true;    ///< The file system takes another file.
    bool is_read_only = false;     ///< The file system.
    std::string
        foreign_file;  ///< First broker file that its owner cannot write; empty: none found.
  };
  std::optional<Directory> state;  ///< Nothing: the directory does not exist.
  bool has_card_driver = false;    ///< The kernel module of NVIDIA.
  bool has_card_device = false;    ///< /dev/nvidiactl and /dev/nvidia0
};

/// Reads the machine that this runs on. What cannot be read is left as if it were not there.
/// Waits at most 2 s for the broker's answer, and as long for a connection.
MachineFacts read_machine(const std::string& socket, const std::string& state_dir);

}  // namespace leasehold::brokerctl
