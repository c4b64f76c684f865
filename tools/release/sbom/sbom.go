// Package sbom writes a CycloneDX document for a built program: the modules that the Go
// toolchain recorded in it, with their licences.
package sbom

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"carronade/tools/release/build"
	"carronade/tools/release/notices"
)

// Write writes the document for a program. The parts are those of all platforms; the
// document has those of them that are in the program, and each module of the program must
// be among them.
func Write(w io.Writer, program string, p build.Platform, facts build.Facts, info *debug.BuildInfo, parts []notices.Part) error {
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	self := cdx.Component{
		BOMRef: "pkg:generic/carronade@" + facts.Version, Type: cdx.ComponentTypeApplication,
		Name: "carronade", Version: facts.Version,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses: licenses([]string{"Apache-2.0"}),
		Properties: &[]cdx.Property{
			{Name: "carronade:platform", Value: p.String()},
			{Name: "carronade:commit", Value: facts.Commit},
			{Name: "carronade:go", Value: info.GoVersion},
		},
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid(sum[:])
	bom.Metadata = &cdx.Metadata{Timestamp: facts.Time.Format(time.RFC3339), Component: &self}

	known := map[string]notices.Part{}
	for _, part := range parts {
		known[part.Name] = part
	}
	components, refs := []cdx.Component{}, []string{}
	add := func(c cdx.Component) {
		components = append(components, c)
		refs = append(refs, c.BOMRef)
	}
	for _, m := range info.Deps {
		part, ok := known[m.Path]
		if !ok {
			return fmt.Errorf("%s contains the module %s, whose licence is unknown", program, m.Path)
		}
		if m.Replace != nil {
			m = m.Replace
		}
		c := module(m.Path, m.Version, part.Licenses)
		if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			// It is the checksum of go.sum: of a list of files, not of one file.
			if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
				c.Properties = &[]cdx.Property{{Name: "go:h1", Value: hex.EncodeToString(raw)}}
			}
		}
		add(c)
	}
	for _, part := range parts {
		switch {
		case part.Name == notices.Library:
			add(module("std", strings.TrimPrefix(info.GoVersion, "go"), part.Licenses))
		case strings.HasPrefix(part.Name, notices.Embedded):
			name := strings.TrimPrefix(part.Name, notices.Embedded)
			add(cdx.Component{
				BOMRef: "embedded:" + name, Type: cdx.ComponentTypeFile, Name: name,
				Version: strings.TrimPrefix(part.Version, "v"), Licenses: licenses(part.Licenses),
			})
		}
	}
	slices.Sort(refs)
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
}

func module(path, version string, ids []string) cdx.Component {
	ref := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: ref, Licenses: licenses(ids)}
}

func licenses(ids []string) *cdx.Licenses {
	var all cdx.Licenses
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}

// uuid is a UUID of version 5 from a hash, so equal programs have equal documents.
func uuid(hash []byte) string {
	u := sha1.Sum(hash)
	u[6], u[8] = u[6]&0x0f|0x50, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:16])
}
