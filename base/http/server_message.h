// SPDX-License-Identifier: Apache-2.0
// Between what Beast reads and writes and HttpServer's requests and responses. Private to this
// folder.
//
// Thread: any; pure.
#pragma once

#include <boost/beast/http.hpp>
#include <string>

#include "base/http/server.h"
#include "base/status.h"

namespace flamefleet {

using RequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;
using ResponseMessage = boost::beast::http::response<boost::beast::http::string_body>;

HttpServerResponse ErrorAnswer(boost::beast::http::status status, const std::string& message);

// kInvalidArgument: a target that is no path, or badly encoded. Takes the body.
Result<HttpServerRequest> ConvertRequest(RequestParser& parser);

// What reading a request ends with when there is no room for its body beside those of the others.
inline boost::system::error_code NoRoomForBody() {
  return make_error_code(boost::system::errc::not_enough_memory);
}

// The answer to a request that could not be read; status 0: the connection is just closed.
HttpServerResponse AnswerTo(const boost::system::error_code& error,
                            const HttpServerOptions& options);

// What is sent; an internal error when a header would carry a line break.
ResponseMessage ConvertResponse(HttpServerResponse response, unsigned version, bool keep_alive);

}  // namespace flamefleet
