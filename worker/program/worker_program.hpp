/// Runs a worker process, from its files to its last step. Each stage is an object that needs the
/// earlier ones, and owns what exists from then on:
///
///   OpenedWorker    files, sockets and threads; nothing is asked of the broker
///   AttachedWorker  the session with the broker, whose calls arrive from here on
///   LoadedWorker    the backend, and an engine with its weights
///   ReadyWorker     the servers; announced to the broker
///
/// The threads have these names in `ps -L`, except the first, which has the program's name:
///
///   main       attaches, loads, then runs the engine; thread 0 of the backend
///   compute    threads 1 … n-1 of the backend
///   io         the broker's socket
///   tenants    the tenants' sockets, so that tenants' input delays no answer to the broker
///   mapper     maps and prefaults granted extents
///   unmapper   unmaps fenced leases
///   lines      parses tenants' long lines, so that they delay no stream
///   parser     parses tenants' requests: templates, tokens, grammars
///   digest     reads the model file for its digest, until the worker is ready
///   watcher    stops requests at their deadlines
///   spill      with a lent spill file: seals, writes and reads blocks
///   index      with --kv-index-url: sends the ids of ended requests to the index
///   index-name looks up the index's address
///   http       with --http: the HTTP server
///   http-parse with --http: parses long bodies, and tokenizes; two threads
///   metrics    with --metrics: makes and sends the page of metrics
///
/// The first thread has a time slice of 500 µs and those of sockets 100 µs
/// (request_short_time_slice); mapper, lines, parser, spill, http-parse, index, metrics and digest
/// have a smaller share (use_batch_scheduling).
#pragma once

#include "common/result.hpp"
#include "worker/options.hpp"
#include "worker/program/reload.hpp"

namespace leasehold {

/// Runs until a signal (success), or until the broker is lost and the last lease has expired
/// (BrokerLost). SIGTERM drains (worker_stop.hpp); a second SIGTERM, or SIGINT, stops at once.
/// SIGHUP calls `reload`. Errors: those of start-up; the device's fault.
Result<void> run_worker(const WorkerOptions& options, ReloadOptions reload);

}  // namespace leasehold
