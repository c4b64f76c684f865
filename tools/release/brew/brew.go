// Package brew writes a formula for Homebrew from the template in packaging/homebrew.
package brew

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"carronade/tools/release/build"
)

var marker = regexp.MustCompile(`@[A-Z0-9_]+@`)

// Formula fills the template: @VERSION@, and for each platform of the template
// @URL_DARWIN_ARM64@ and @SHA256_DARWIN_ARM64@. The archives are at base, under their
// names. A marker without a value is an error.
func Formula(template, base string, facts build.Facts, archives map[build.Platform]string, sums map[string]string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(base, "\"#\\\n") {
		return "", fmt.Errorf("%q is not an address of downloads: want one like https://example.org/carronade/v1.0.0", base)
	}
	values := map[string]string{"@VERSION@": facts.Version}
	for p, file := range archives {
		name := strings.ToUpper(p.Suffix())
		values["@URL_"+name+"@"] = strings.TrimSuffix(base, "/") + "/" + url.PathEscape(file)
		values["@SHA256_"+name+"@"] = sums[file]
	}
	var missing []string
	out := marker.ReplaceAllStringFunc(template, func(m string) string {
		v := values[m]
		if v == "" {
			missing = append(missing, m)
		}
		return v
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("the formula needs %s: build its platforms too", strings.Join(missing, ", "))
	}
	return out, nil
}
