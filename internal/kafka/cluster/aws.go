package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl/aws"

	"carronade/internal/place"
	"carronade/protocol"
)

// profileKeys are the keys of a user of AWS, by the names that they have in the files of profiles.
const (
	profileAccess = "aws_access_key_id"
	profileSecret = "aws_secret_access_key"
	profileToken  = "aws_session_token"
)

// elsewhere are settings of a profile by which its keys come from another place, which Carronade does not ask.
var elsewhere = []string{"role_arn", "source_profile", "credential_source", "credential_process", "web_identity_token_file", "sso_*"}

// awsProfile reads the keys of a profile from the user's files, as the clients of AWS do: first
// ~/.aws/credentials, then ~/.aws/config.
func awsProfile(name string) (aws.Auth, error) {
	fail := func(err error) (aws.Auth, error) {
		return aws.Auth{}, &protocol.Error{
			Doing: fmt.Sprintf("read the profile %q of AWS", name), Err: err,
			Hint: "give keys instead: --user KEY --password env:NAME --session-token env:NAME (aws configure export-credentials prints those of a profile)",
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return fail(err)
	}
	all := map[string]string{}
	for _, file := range []struct{ variable, path, section string }{
		{"AWS_SHARED_CREDENTIALS_FILE", "credentials", name},
		{"AWS_CONFIG_FILE", "config", "profile " + name},
	} {
		path := os.Getenv(file.variable)
		if path == "" {
			path = filepath.Join(home, ".aws", file.path)
		}
		section := file.section
		if name == "default" {
			section = name
		}
		data, err := place.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fail(err)
		}
		for key, value := range iniSection(place.TextOf(data), section) {
			if _, set := all[key]; !set {
				all[key] = value
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if matchesAny(elsewhere, key) {
			return fail(fmt.Errorf("it takes its keys from elsewhere (%s), which is not supported", key))
		}
	}
	auth := aws.Auth{AccessKey: all[profileAccess], SecretKey: all[profileSecret], SessionToken: all[profileToken]}
	if auth.AccessKey == "" || auth.SecretKey == "" {
		return fail(errors.New("it has no access key and secret key"))
	}
	return auth, nil
}

// iniSection returns the settings of a section: lines "key = value", where # and ; begin comments.
func iniSection(data []byte, section string) map[string]string {
	settings, inside := map[string]string{}, false
	for line := range strings.Lines(string(data)) {
		nested := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		line = strings.TrimSpace(line)
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			name, _, _ := strings.Cut(line[1:], "]")
			inside = strings.Join(strings.Fields(name), " ") == section
		case inside && ok && !nested: // nested ones are settings of services
			settings[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return settings
}
