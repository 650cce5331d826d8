#include "tpe/stream.hpp"

#include <algorithm>
#include <string>

#include "tpe/encoder_tables.hpp"

namespace teller::tpe {

StreamEncoder::StreamEncoder(const Encoder& encoder, Options options) : encoder_(encoder), options_(options) {
  options_.min_batch = std::max<uint32_t>(options_.min_batch, 1);
  options_.max_nodes = std::clamp<uint32_t>(options_.max_nodes, 1, kMaxForestNodes);
}

base::Status StreamEncoder::Push(uint32_t symbol, uint32_t depth, Tokens& out) {
  const auto bad = [&](std::string text) {
    return base::Error{base::Code::kBadFormat, std::move(text), {}, "node " + std::to_string(done_ + waiting())};
  };
  if (!encoder_.tables_->IsBase(symbol)) {
    return bad("symbol is " + std::to_string(symbol) + ", expected a base id of the vocabulary");
  }
  const bool is_first = done_ == 0 && symbols_.empty();
  if (depth >= kMaxDepth || (!is_first && depth > last_depth_ + 1)) {
    return bad("depth is " + std::to_string(depth) + ", expected at most " +
               std::to_string(is_first ? kMaxDepth - 1 : std::min(last_depth_ + 1, kMaxDepth - 1)));
  }
  if (uint64_t{done_} + waiting() >= kMaxNodes) {
    return base::Error{base::Code::kLimit, "step has more than " + std::to_string(kMaxNodes) + " nodes; end it"};
  }
  if (waiting() >= options_.min_batch && !encoder_.tables_->seams.Joins(symbols_.back(), last_depth_, symbol, depth)) {
    TELLER_TRY(Flush(out));
  } else if (waiting() >= options_.max_nodes) {
    ++forced_cuts_;
    TELLER_TRY(Flush(out));
  }
  symbols_.push_back(symbol);
  depths_.push_back(depth);
  last_depth_ = depth;
  return {};
}

base::Status StreamEncoder::End(Tokens& out) {
  const base::Status status = Flush(out);
  done_ = 0;
  return status;
}

base::Status StreamEncoder::Flush(Tokens& out) {
  TELLER_TRY(encoder_.Encode({symbols_, depths_}, scratch_, batch_));
  for (size_t i = 0; i < batch_.size(); ++i) {
    out.ids.push_back(batch_.ids[i]);
    out.depths.push_back(batch_.depths[i]);
    out.first_node.push_back(done_ + batch_.first_node[i]);
  }
  done_ += waiting();
  symbols_.clear();
  depths_.clear();
  return {};
}

}  // namespace teller::tpe
