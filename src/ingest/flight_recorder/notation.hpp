#pragma once

#include <string_view>

#include "base/status.hpp"
#include "ingest/flight_recorder/value.hpp"

namespace teller::ingest::flight_recorder {

/// Reads one JSON document. Texts are copied into the tree. Errors: kBadFormat, kLimit.
base::Result<ValueTree> ParseJson(std::string_view text);

/// What a pickle left behind its end.
struct PickleEnd {
  size_t trailing = 0;  ///< bytes that were not read
};

/// Reads one Python pickle (protocols 0 to 5) without executing anything: only opcodes that build None, bools, numbers,
/// texts, bytes, lists, tuples, sets and dicts are accepted; one that names, calls or restores an object is refused by
/// its name. Texts point into `bytes`, which must outlive the tree.
/// Source: CPython, Lib/pickletools.py (the meaning of each opcode).
/// Errors: kBadFormat (cut off, out of order), kUnsupported (a refused opcode), kLimit (more than
/// ValueTree::kMaxValues values); `at` says at which byte.
base::Result<ValueTree> ParsePickle(std::string_view bytes, PickleEnd& end);

/// True when `head` is the front of a pickle of any protocol.
bool LooksLikePickle(std::string_view head);

}  // namespace teller::ingest::flight_recorder
