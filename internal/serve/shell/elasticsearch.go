package shell

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/term"

	"carronade/internal/serve/jobs"
	"carronade/internal/store/elastic"
)

const localElasticsearch = "http://localhost:9200"

// client returns a client of the Elasticsearch in use.
func (c *cluster) client() *elastic.APMCluster {
	out := &elastic.APMCluster{URL: c.URL, User: c.User}
	if c.User != "" {
		out.Password = "file:" + c.Password
	}
	return out
}

func (s *session) elasticsearch(words []string) error {
	switch {
	case len(words) >= 2 && words[1] == "use" && len(words) <= 5:
		return s.useElasticsearch(words[2:])
	case len(words) == 2 && words[1] == "reset":
		return s.resetElasticsearch()
	}
	return s.usage(words)
}

func (s *session) useElasticsearch(args []string) error {
	var c cluster
	switch {
	case len(args) == 0:
		s.say("%s", s.clusterLine())
		return nil
	case len(args) == 1 && args[0] == "last":
		if err := s.home.load("elasticsearch", &c); err != nil {
			return err
		}
		if c.URL == "" {
			return hinted(errors.New("no Elasticsearch was in use before"), "elasticsearch use local")
		}
	case args[0] == "local" || args[0] == "last":
		if len(args) > 1 {
			return s.usage([]string{"elasticsearch"})
		}
		c.URL = localElasticsearch
	default:
		c.URL = strings.TrimRight(args[0], "/")
		if err := (&elastic.APMCluster{URL: c.URL}).Check(); err != nil {
			return hinted(err, "elasticsearch use http://localhost:9200 USER PASSWORD")
		}
		if err := s.reach(c.URL); err != nil {
			return err
		}
		if len(args) > 1 {
			if err := s.login(&c, args[1:]); err != nil {
				return err
			}
		}
	}
	if err := s.reach(c.URL); err != nil {
		return err
	}
	ctx, cancel := s.soonCtx()
	defer cancel()
	if _, _, err := c.client().Status(ctx); err != nil {
		return hinted(fmt.Errorf("elasticsearch %s: %w", c.URL, err), "is it running, and are user and password right?")
	}
	s.es = c
	if err := s.home.save("elasticsearch", &c); err != nil {
		return err
	}
	s.say("using %s", c.URL)
	return nil
}

// hasPassword reports whether words contain the password of elasticsearch use.
func hasPassword(ws []word) bool {
	for i := range ws {
		if ws[i].text == "elasticsearch" && len(ws) > i+4 && ws[i+1].text == "use" && ws[i+4].text != separator && ws[i+3].text != separator && ws[i+2].text != separator {
			return true
		}
	}
	return false
}

// A history is that of a terminal, without lines that contain a password.
type history struct{ term.History }

// Add implements term.History.
func (h history) Add(line string) {
	if ws, err := split(line); err == nil && !hasPassword(ws) {
		h.History.Add(line)
	}
}

// reach returns an error if the session may not connect to an address.
func (s *session) reach(address string) error {
	if s.Allow == nil || s.Allow.Address == nil {
		return nil
	}
	return s.Allow.Address(address)
}

// login reads user and password. The password goes to a file of the user.
func (s *session) login(c *cluster, args []string) (err error) {
	c.User = args[0]
	var password string
	switch {
	case c.User == "" || strings.Contains(c.User, ":"):
		return errors.New("a user's name has no colon and is not empty")
	case len(args) > 1:
		password = args[1]
	default:
		if password, err = s.ask("password: ", true); err != nil {
			return err
		}
	}
	if password == "" {
		return errors.New("the password is empty")
	}
	c.Password, err = s.home.keepPassword(c.URL, c.User, password)
	return err
}

// resetElasticsearch deletes the indices of the APM Server as a job, so that tests
// submitted before it are not disturbed.
func (s *session) resetElasticsearch() error {
	if s.es.URL == "" {
		return errNoElasticsearch
	}
	ctx, cancel := s.soonCtx()
	defer cancel()
	list, err := s.es.client().Names(ctx)
	if err != nil {
		return fmt.Errorf("elasticsearch %s: %w", s.es.URL, err)
	}
	docs, err := s.es.client().Count(ctx, elastic.APMIndices)
	if err != nil {
		return fmt.Errorf("elasticsearch %s: %w", s.es.URL, err)
	}
	answer, err := s.ask(fmt.Sprintf("delete all indices %s of %s (now %d with %d docs)? yes or no: ", elastic.APMIndices, s.es.URL, len(list), docs), false)
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		s.say("nothing deleted")
		return nil
	}
	args := append([]string{"as", "hey-apm"}, s.esFlags()...)
	return s.submit(jobs.Request{System: s.systemOf("apm"), Typed: "elasticsearch reset", Args: append(args, "elasticsearch", "reset", "--yes")})
}

var errNoElasticsearch = hinted(errors.New("no Elasticsearch is in use"), "elasticsearch use <url>")

// esFlags are the flags of the drop-in for the Elasticsearch behind the server.
func (s *session) esFlags() []string {
	if s.es.URL == "" {
		return nil
	}
	out := []string{"-apm-es-url", s.es.URL}
	if auth := s.es.auth(); auth != "" {
		out = append(out, "-apm-es-auth", auth)
	}
	return out
}

// clusterLine is the first line of status.
func (s *session) clusterLine() string {
	if s.es.URL == "" {
		return "ElasticSearch not configured (hint: elasticsearch use <url>)"
	}
	ctx, cancel := s.soonCtx()
	defer cancel()
	health, docs, err := s.es.client().Status(ctx)
	if err != nil {
		return fmt.Sprintf("ElasticSearch [%s]: %s", s.es.URL, s.out.paint(red, "not available: "+Printable(err.Error())))
	}
	return fmt.Sprintf("ElasticSearch [%s]: %s ,  %d docs", s.es.URL, s.out.paint(map[string]string{"green": green, "yellow": yellow, "red": red}[health], health), docs)
}
