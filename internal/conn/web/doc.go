// Package web sends requests that are prepared ahead over HTTP, for protocols whose batches are such
// requests. A lane is one connection of HTTP/1.1, with one request in flight or several in a row;
// other lanes can take its place. The package also has what such protocols share: headers with
// secrets by reference, classes of status codes, and texts of servers without secrets. It does not
// know the bodies of requests, or what an answer means.
//
// Its invariant: every accepted batch is completed once, and only by what the server said about
// it: what was written and not answered is unknown.
package web
