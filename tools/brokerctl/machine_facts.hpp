/// What `brokerctl doctor` knows about the machine. A plain value, so that tests can set it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/machine/numa_nodes.hpp"
#include "ipc/control/messages/audit/audit_state.hpp"

namespace leasehold::brokerctl {

struct MachineFacts {
  std::string kernel_release;             ///< "6.1.0-28-amd64"
  std::uint64_t memlock_bytes = 0;        ///< RLIMIT_MEMLOCK; the largest number means no limit.
  bool may_lock_more = false;             ///< True for root.
  std::uint64_t reserved_huge_pages = 0;  ///< HugePages_Free; not usable as ordinary memory.
  NumaNodes nodes;                        ///< NUMA nodes with the cores of this process.
  std::uint32_t worker_threads = 1;       ///< Default number of worker threads.
  bool is_installed = false;              ///< The unit file is in /lib or /etc/systemd/system.
  bool has_broker_user = false;           ///< The user leasehold exists.
  bool has_worker_user = false;           ///< The user leasehold-worker exists.
  bool has_monitor_user = false;          ///< The user leasehold-monitor exists.
  std::string socket;
  bool socket_exists = false;
  std::string socket_error;               ///< Why no broker answered at `socket`; empty if one did.
  std::optional<wire::AuditState> audit;  ///< As the broker says; empty if it does not.
  std::string state_dir;
  struct Directory {
    mode_t mode = 0;
    std::string owner;
    std::uint64_t free_bytes = 0;  ///< Free space for users other than root.
    bool has_free_files = true;    ///< The file system has room for another file.
    bool is_read_only = false;     ///< The file system is mounted read-only.
    /// First broker file that the owner of the directory cannot write; empty: none found.
    std::string foreign_file;
  };
  std::optional<Directory> state;  ///< Empty if the directory does not exist.
  bool has_card_driver = false;    ///< The kernel module of NVIDIA is loaded.
  bool has_card_device = false;    ///< /dev/nvidiactl and /dev/nvidia0 exist.
};

/// Reads the facts of this machine. A fact that cannot be read keeps its default. Waits at most 2 s
/// for a connection to the broker, and 2 s for its answer.
MachineFacts read_machine(const std::string& socket, const std::string& state_dir);

}  // namespace leasehold::brokerctl
