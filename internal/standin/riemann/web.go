package riemann

import (
	"net"
	"net/http"
)

func (s *Server) web(m *meter) http.Handler { return http.NotFoundHandler() }

func (s *Server) webState(m *meter) func(net.Conn, http.ConnState) { return nil }
