package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// allowOrigin sets the headers that let a page of any origin use a path for browsers. It answers a browser's
// question before the request itself (done), also while browsers are refused.
func allowOrigin(w http.ResponseWriter, r *http.Request) (done bool) {
	h := w.Header()
	if origin := r.Header.Get("Origin"); origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
	}
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Max-Age", "3600")
	h.Set("Vary", "Origin")
	h.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Content-Encoding, Accept")
	h.Set("Access-Control-Expose-Headers", "Etag")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return true
}

// noConfig is the version of a configuration that does not exist.
const noConfig = "-"

// agentConfig answers agents that ask for their central configuration, as a server does that has none.
func (s *Server) agentConfig(rum bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if rum && allowOrigin(w, r) || !s.authorize(w, r, rum) {
			return
		}
		w.Header().Set("Cache-Control", "max-age=300, must-revalidate")
		service := r.URL.Query().Get("service.name")
		switch r.Method {
		case http.MethodGet:
		case http.MethodPost:
			var in struct{ Service struct{ Name string } }
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxUnread)).Decode(&in); err != nil {
				answerError(w, http.StatusBadRequest, err.Error())
				return
			}
			service = in.Service.Name
		default:
			answerError(w, http.StatusMethodNotAllowed, fmt.Sprintf("method not supported: %.40s", r.Method))
			return
		}
		if service == "" {
			answerError(w, http.StatusBadRequest, "service.name is required")
			return
		}
		w.Header().Set("Cache-Control", "max-age=30, must-revalidate")
		w.Header().Set("Etag", `"`+noConfig+`"`)
		w.Header().Set("Access-Control-Expose-Headers", "Etag")
		known := strings.ReplaceAll(r.Header.Get("If-None-Match"), `"`, "")
		if known == "" {
			known = r.URL.Query().Get("ifnonematch")
		}
		if known == noConfig {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		answerJSON(w, http.StatusOK, struct{}{})
	}
}
