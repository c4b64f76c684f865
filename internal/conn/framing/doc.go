// Package framing has how HTTP divides a connection into messages: chunks of HTTP/1.1, frames of HTTP/2, and the head
// of gRPC's messages in them. It does no I/O and keeps no state. Clients and stand-ins share it.
//
// Its invariant: what another program sent is read within its bounds, or refused with an error.
package framing
