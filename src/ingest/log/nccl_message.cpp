#include "ingest/log/nccl_message.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "ingest/log/cursor.hpp"

namespace teller::ingest::log {

namespace {

using Kind = NcclMessage::Kind;

constexpr int64_t kMaxRank = 1 << 20;
constexpr size_t kMaxWord = 64;    // ids, transports, names of networks and nodes
constexpr size_t kMaxRing = 4096;  // text of a ring's order that is kept
constexpr size_t kMaxEdges = 4096;
constexpr double kMaxGbs = 1e6;  // "LOC" stands for 5000; nothing real is faster

/// Text behind `mark` up to a blank, comma or bracket; empty when the mark is not there or the word is too long.
std::string_view WordAfter(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + mark.size());
  const std::string_view word = rest.substr(0, rest.find_first_of(" ,)]\n"));
  return word.size() <= kMaxWord ? word : std::string_view();
}

int IntegerOf(std::string_view word) {
  int64_t value = 0;
  Cursor c(word);
  if (!c.Number(1, 7, value) || value > kMaxRank) return -1;
  return static_cast<int>(value);
}
int IntegerAfter(std::string_view text, std::string_view mark) {
  return IntegerOf(WordAfter(text, mark));
}

double RealOf(std::string_view word) {
  double value = -1;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  return fault == std::errc() && value >= 0 && value < kMaxGbs ? value : -1;
}
double RealAfter(std::string_view text, std::string_view mark) {
  return RealOf(WordAfter(text, mark));
}

bool ReadRank(Cursor& c, int& rank) {
  int64_t value = 0;
  if (!c.Number(1, 7, value) || value > kMaxRank) return false;
  rank = static_cast<int>(value);
  return true;
}

bool ParseInit(std::string_view m, NcclMessage& out) {
  const bool start = EndsWith(m, "Init START");
  if (!start && !EndsWith(m, "Init COMPLETE")) return false;
  out.comm = WordAfter(m, "comm ");
  out.rank = IntegerAfter(m, " rank ");
  out.nranks = IntegerAfter(m, " nranks ");
  if (out.comm.empty() || out.rank < 0 || out.nranks <= out.rank) return false;
  out.kind = start ? Kind::kInitStart : Kind::kInitComplete;
  out.device = IntegerAfter(m, " cudaDev ");
  out.bus_id = WordAfter(m, " busId ");
  if (const auto id = WordAfter(m, " commId "); !id.empty()) out.comm_id = std::string(id);
  out.parent = WordAfter(m, " parent ");
  // "splitCount 1 color 5 key 0": the key only orders the ranks.
  if (const size_t at = m.find(" splitCount "); at != std::string_view::npos) {
    out.color = m.substr(at + 1, m.find(" key ", at) - at - 1);
  } else if (const size_t color = m.find(" color "); color != std::string_view::npos) {
    out.color = m.substr(color + 1, m.find(" key ", color) - color - 1);
  }
  if (out.color.size() > kMaxWord) out.color = {};
  return true;
}

bool ParseTimings(std::string_view m, NcclMessage& out) {
  if (!StartsWith(m, "Init timings")) return false;
  out.rank = IntegerAfter(m, "rank ");
  out.nranks = IntegerAfter(m, "nranks ");
  out.total_s = RealAfter(m, " total ");
  out.bootstrap_s = RealAfter(m, "bootstrap ");
  if (out.rank < 0 || out.total_s < 0) return false;
  out.kind = Kind::kTimings;
  return true;
}

trace::Transport TransportOf(std::string_view via) {
  if (StartsWith(via, "P2P")) return trace::Transport::kP2p;
  if (StartsWith(via, "SHM")) return trace::Transport::kShm;
  if (StartsWith(via, "NET/Socket")) return trace::Transport::kSocket;
  if (StartsWith(via, "NET/")) return trace::Transport::kNet;
  return trace::Transport::kOther;
}

/// "0[0] -> 8[0] [send] via NET/IB/0/GDRDMA", "0[17000] -> 1[65000] via P2P/IPC/read".
bool ParsePeer(Cursor c, NcclMessage& out) {
  std::string_view inside;
  const auto bracket = [&] { return c.Eat('[') && c.Until("]", inside) && inside.size() <= 16 && c.Eat(']'); };
  if (!ReadRank(c, out.rank) || !bracket() || !c.Eat(" -> ") || !ReadRank(c, out.to) || !bracket()) return false;
  if (c.Eat(" [send]")) out.side = 's';
  if (c.Eat(" [receive]")) out.side = 'r';
  if (!c.Eat(" via ")) return false;
  std::string_view via = c.rest();
  // "direct pointer" is one word of two.
  size_t end = via.find(' ');
  if (StartsWith(via, "P2P/direct pointer")) end = via.find(' ', 18);
  via = via.substr(0, std::min(end, kMaxWord));
  if (via.empty()) return false;
  out.text = via;
  out.transport = TransportOf(via);
  out.gdr = Contains(via, "/GDRDMA");
  out.kind = Kind::kChannel;
  return true;
}

bool ParseChannel(std::string_view m, NcclMessage& out) {
  Cursor c(m);
  const bool old = c.Eat("Ring ");  // 2.4 to 2.6 call a channel so
  if (!old && !c.Eat("Channel ")) return false;
  int64_t number = 0;
  int64_t of = -1;
  if (!c.Number(1, 4, number)) return false;
  if (c.Eat('/') && !c.Number(1, 4, of)) return false;
  if (!c.Eat(" : ")) return false;
  c.SkipSpaces();
  if (ParsePeer(c, out)) return true;
  if (old || of <= 0) return false;
  const std::string_view order = TrimRight(c.rest());
  if (order.empty() || order.find_first_not_of("0123456789 ") != std::string_view::npos) return false;
  out.kind = Kind::kRing;
  out.channels = static_cast<int>(of);
  out.text = order.substr(0, kMaxRing);
  return true;
}

bool ReadSignedRank(Cursor& c, int& rank) {
  if (c.Eat("-1")) {
    rank = -1;
    return true;
  }
  return ReadRank(c, rank);
}

/// "[0] 1/8/-1->0->-1 [1] ..": children, self, parent.
bool ParseTrees(std::string_view m, NcclMessage& out) {
  Cursor c(m);
  if (!c.Eat("Trees ")) return false;
  while (c.Eat('[') && out.edges.size() < kMaxEdges) {
    int64_t channel = 0;
    std::array<int, 3> child = {-1, -1, -1};
    int self = -1;
    int parent = -1;
    if (!c.Number(1, 4, channel) || !c.Eat("] ")) break;
    if (!ReadSignedRank(c, child[0]) || !c.Eat('/') || !ReadSignedRank(c, child[1]) || !c.Eat('/') ||
        !ReadSignedRank(c, child[2]) || !c.Eat("->") || !ReadSignedRank(c, self) || !c.Eat("->") ||
        !ReadSignedRank(c, parent))
      break;
    for (const int one : child) {
      if (one >= 0) out.edges.emplace_back(self, one);
    }
    if (parent >= 0) out.edges.emplace_back(parent, self);
    c.SkipSpaces();
  }
  if (out.edges.empty()) return false;
  out.kind = Kind::kTrees;
  return true;
}

bool ParseCounts(std::string_view m, NcclMessage& out) {
  const size_t at = m.find(" coll channels");
  if (at == std::string_view::npos || at > 6) return false;
  out.channels = IntegerOf(m.substr(0, at));
  const auto before = [&](std::string_view label) {
    const size_t end = m.find(label);
    if (end == std::string_view::npos || end == 0) return -1;
    const size_t begin = m.rfind(' ', end - 1);
    return IntegerOf(m.substr(begin + 1, end - begin - 1));
  };
  out.p2p_channels_per_peer = before(" p2p channels per peer");
  out.p2p_channels = before(" p2p channels,");
  out.nvls_channels = before(" nvls channels");
  if (out.channels < 0) return false;
  out.kind = Kind::kCounts;
  return true;
}

bool ParseNode(std::string_view m, NcclMessage& out) {
  const std::string_view line = TrimLeft(m);
  out.indent = m.size() - line.size();
  Cursor c(line);
  if (c.Eat("+ ")) {
    out.link = c.Word("");
    std::string_view gbs;
    if (out.link.empty() || out.link.size() > 8 || !c.Eat('[') || !c.Until("]", gbs) || !c.Eat("] - ")) return false;
    out.gbs = RealOf(gbs);
    if (out.gbs < 0) return false;
  } else if (out.indent > 0 || !StartsWith(line, "CPU/")) {
    return false;
  }
  out.text = c.Word("/-");
  const size_t slash = out.text.find('/');
  if (slash == std::string_view::npos || slash == 0 || out.text.size() > kMaxWord) return false;
  if (Contains(c.rest(), ":")) return false;  // a list of paths
  if (c.Eat(" (")) ReadRank(c, out.rank);
  if (c.peek() != ')') out.rank = -1;  // "(1/1/2)" of a CPU is no rank
  out.kind = Kind::kNode;
  return true;
}

bool ParsePattern(std::string_view m, NcclMessage& out) {
  if (!StartsWith(m, "Pattern ")) return false;
  out.pattern = IntegerAfter(m, "Pattern ");
  out.channels = IntegerAfter(m, "nChannels ");
  std::string_view word = WordAfter(m, " bw ");
  if (word.empty()) word = WordAfter(m, " speed ");  // before 2.14
  const double one = RealOf(word.substr(0, word.find('/')));
  if (out.pattern < 0 || out.channels < 0 || one < 0) return false;
  out.gbs = one * out.channels;
  out.kind = Kind::kPattern;
  return true;
}

bool ParseSystem(std::string_view m, NcclMessage& out) {
  if (!StartsWith(m, "===")) return false;
  if (StartsWith(m, "=== System : max")) {
    out.gbs = RealAfter(m, m.find("maxWidth ") != std::string_view::npos ? "maxWidth " : "maxBw ");
    out.total_gbs = RealAfter(m, m.find("totalWidth ") != std::string_view::npos ? "totalWidth " : "totalBw ");
    out.kind = Kind::kSystem;
    return true;
  }
  if (m.find_first_not_of('=') != std::string_view::npos) return false;
  out.kind = Kind::kSystemEnd;
  return true;
}

bool ParseRemark(std::string_view m, NcclMessage& out) {
  if (StartsWith(m, "Using network ")) {
    out.text = WordAfter(m, "Using network ");
    out.kind = Kind::kNetwork;
    return !out.text.empty();
  }
  const bool notice = Contains(m, "GPU Direct RDMA Disabled") || StartsWith(m, "P2P is disabled between") ||
                      StartsWith(m, "Could not enable P2P between") || StartsWith(m, "NET/IB : No device found");
  if (!notice) return false;
  out.text = m.substr(0, std::min<size_t>(m.find('\n'), 200));
  out.kind = Kind::kNotice;
  return true;
}

}  // namespace

std::string NodeName(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::string(text);
  std::string_view kind = text.substr(0, slash);
  std::string_view id = text.substr(slash + 1);
  if (const size_t dash = id.rfind('-'); dash != std::string_view::npos) id.remove_prefix(dash + 1);
  if (kind == "DEV") kind = "GPU";  // 2.28: a device and the GPUs that it is shared out to
  std::string name(kind);
  name += '/';
  for (const char c : id) name += IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

NcclMessage ParseNcclMessage(std::string_view message) {
  const std::string_view m = TrimRight(message.substr(0, message.find('\n')));
  NcclMessage out;
  if (m.empty()) return out;
  for (auto* parse : {ParseInit, ParseTimings, ParseChannel, ParseTrees, ParseCounts, ParseSystem, ParseNode,
                      ParsePattern, ParseRemark}) {
    if (parse(m, out)) return out;
    out = {};
  }
  return out;
}

}  // namespace teller::ingest::log
