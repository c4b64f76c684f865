package shell

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"carronade/internal/secret"
	"carronade/internal/serve/jobs"
)

// tool runs the drop-in for the tool, whose lines test prints.
var tool = []string{"as", "hey-apm"}

// test queues a test of the server in use. The drop-in checks its arguments again; here
// they are checked so that an error comes before the job waits.
func (s *session) test(words []string) error {
	if len(words) < 6 {
		return s.usage(words)
	}
	v := s.system["apm"]
	switch {
	case v.URL == "":
		return hinted(errors.New("no apm-server is in use"), useHint("apm"))
	case v.using() != "" && s.nothingSwitched(v):
		return hinted(errors.New("unknown branch/revision"), "apm switch <branch>")
	case v.using() == "" && len(words) > 6:
		return hinted(errors.New("flags for the server need a server that is started here"), useHint("apm"))
	}
	for i := 6; i < len(words); i += 2 {
		switch {
		case words[i] != "-E" && words[i] != "--mem" && words[i] != "-mem":
			return fmt.Errorf("test: %s is neither -E NAME=VALUE nor --mem SIZE", cut(words[i], 40))
		case i+1 == len(words):
			return fmt.Errorf("test: %s has no value", words[i])
		case words[i] == "-E" && isSecretName(words[i+1]):
			return hinted(errors.New("test: the line contains a secret"), "give it as -E NAME=file:PATH or NAME=env:NAME")
		case s.Allow != nil && words[i] == "-E" && isReference(words[i+1]):
			return errors.New("test: this session may not read files or variables of this machine")
		}
	}
	args := slices.Concat(tool, []string{"-base-url", v.URL}, s.esFlags())
	if s.es.URL != "" {
		args = append(args, "-es-url", s.es.URL)
		if auth := s.es.auth(); auth != "" {
			args = append(args, "-es-auth", auth)
		}
	}
	args = append(args, s.starting(v)...)
	test := slices.Clone(words)
	if v.Docker && !slices.Contains(words, "--mem") && !slices.Contains(words, "-mem") {
		test = append(test, "--mem", "4g")
	}
	return s.submit(jobs.Request{System: s.systemOf("apm"), Typed: typed(words), Args: append(args, test...)})
}

// nothingSwitched reports whether no branch is chosen, or the switch to the last one has failed.
func (s *session) nothingSwitched(v *server) bool {
	now, open := s.tested(v)
	return v.Switch.Branch == "" || now.Branch == "" && len(open) == 0
}

// starting are the flags that start the server of the repository in use.
func (s *session) starting(v *server) []string {
	if v.using() == "" {
		return nil
	}
	words, password := s.startWords(v)
	started := *v
	started.Cmd = ""
	if !v.Docker {
		if started.Cmd = v.Cmd; v.Cmd == "" {
			started.Cmd = typed(words)
		}
	}
	out := started.flags("-")
	if password != "" {
		out = append(out, "-system-env", passwordVariable+"=file:"+password)
	}
	if v.Docker {
		port := "8200"
		if u, err := url.Parse(v.URL); err == nil && u.Port() != "" {
			port = u.Port()
		}
		out = append(out, "-system-image", "{image}", "-system-publish", "127.0.0.1:"+port+":8200")
		for _, w := range words {
			out = append(out, "-system-arg", w)
		}
	}
	return append(out, "-system-log", s.logOf("apm"))
}

// passwordVariable has the password of Elasticsearch in the server's environment. The
// server replaces ${NAME} in its settings, so no command line has the password.
const passwordVariable = "CARRONADE_ELASTICSEARCH_PASSWORD" //nolint:gosec // its name

// startWords start an APM Server with the Elasticsearch in use, as the tool did. The
// password is a file.
func (s *session) startWords(v *server) (words []string, password string) {
	if v.Cmd != "" {
		own, err := split(v.Cmd)
		if err != nil {
			own = []word{{text: v.Cmd}} // starting it says what is wrong
		}
		return texts(own), ""
	}
	words = []string{defaultStart, "-e"}
	switch u, err := url.Parse(v.URL); {
	case v.Docker:
		words = append(words, "-E", "apm-server.host=0.0.0.0:8200")
	case err == nil && u.Host != "":
		words = append(words, "-E", "apm-server.host="+u.Host)
	}
	if s.es.URL != "" {
		words = append(words, "-E", "output.elasticsearch.hosts="+s.es.URL)
	}
	if s.es.User != "" {
		words = append(words, "-E", "output.elasticsearch.username="+s.es.User, "-E", "output.elasticsearch.password=${"+passwordVariable+"}")
		password = s.es.Password
	}
	return words, password
}

// isSecretName reports whether a setting of the server holds a secret as text.
func isSecretName(setting string) bool {
	name, value, _ := strings.Cut(setting, "=")
	if isReference(setting) || strings.HasPrefix(value, "${") {
		return false
	}
	name = strings.ToLower(name)
	for _, part := range []string{"password", "secret_token", "api_key"} {
		if strings.HasSuffix(name, part) {
			return true
		}
	}
	return false
}

// isReference reports whether the value of a setting is read from a file or a variable.
func isReference(setting string) bool {
	_, value, _ := strings.Cut(setting, "=")
	return secret.IsReference(value)
}

// dump writes the body of a request.
func (s *session) dump(words []string) error {
	if len(words) != 5 {
		return s.usage(words)
	}
	if s.Allow == nil {
		return s.run(slices.Concat(tool, words))
	}
	words = slices.Clone(words)
	if s.Dir != "" && filepath.Base(words[1]) == words[1] && words[1] != "." && filepath.IsLocal(words[1]) { // in the session's own folder
		words[1] = filepath.Join(s.Dir, words[1])
		return s.run(slices.Concat(tool, words))
	}
	dir, err := s.folder(filepath.Dir(words[1]))
	if err != nil {
		return err
	}
	words[1] = filepath.Join(dir, filepath.Base(words[1]))
	return s.run(slices.Concat(tool, words))
}
