package cluster

import (
	"net"
	"strconv"
	"time"
)

// A BrokerMetrics counts what all clients together sent to one broker.
type BrokerMetrics struct {
	Broker     int32         `json:"broker"`
	Addr       string        `json:"addr"`
	Requests   uint64        `json:"requests"`
	Batches    uint64        `json:"batches"`
	Records    uint64        `json:"records"`
	Bytes      uint64        `json:"bytes"`       // of requests, as written
	RawBytes   uint64        `json:"raw_bytes"`   // of records before compression
	SentBytes  uint64        `json:"sent_bytes"`  // of records after compression
	Throttle   time.Duration `json:"throttle_ns"` // requested by the broker
	Throttled  uint64        `json:"throttled"`   // answers that requested it
	Reconnects uint64        `json:"reconnects"`
}

func JoinAddr(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// Led is the number of partitions that a broker leads, by the leaders of all.
func Led(leaders []int32, broker int32) int {
	n := 0
	for _, v := range leaders {
		if v == broker {
			n++
		}
	}
	return n
}
