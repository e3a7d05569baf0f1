// Renders a chart as Helm does, with the template engine, the functions and the schema checker that Helm is made of.
//
//	render CHART <REQUEST >RESULT
//
// REQUEST is JSON: {"release", "namespace", "values", "apis"}. RESULT is {"manifests": {template: text}, "notes"}. Left out
// is what this repository's chart has none of: charts within charts, .Files, hooks with weights.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/xeipuuv/gojsonschema"
	"sigs.k8s.io/yaml"
)

type values = map[string]interface{}

type request struct {
	Release, Namespace string
	Values             values
	Apis               []string
}

type result struct {
	Manifests map[string]string `json:"manifests"`
	Notes     string            `json:"notes"`
}

// .Chart's fields have capitals in templates, whatever Chart.yaml calls them.
type metadata struct {
	Name, Version, AppVersion, KubeVersion, Description, Type string
}

type apiVersions []string

func (known apiVersions) Has(version string) bool {
	for _, each := range known {
		if each == version {
			return true
		}
	}
	return false
}

type capabilities struct {
	APIVersions apiVersions
	KubeVersion struct{ Version, Major, Minor string }
}

// Nested includes: Helm gives up at the same depth.
const deepest = 1000

func fail(what string, why interface{}) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, why)
	os.Exit(1)
}

func load(file string, into interface{}) {
	text, err := os.ReadFile(file)
	if err != nil {
		fail("render", err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		fail(file, err)
	}
}

// merged: the chart's values below those that are given; a null takes a value away.
func merged(given, defaults values) values {
	made := values{}
	for key, value := range defaults {
		made[key] = value
	}
	for key, value := range given {
		table, isTable := value.(values)
		below, hasBelow := made[key].(values)
		switch {
		case value == nil:
			delete(made, key)
		case isTable && hasBelow:
			made[key] = merged(table, below)
		default:
			made[key] = value
		}
	}
	return made
}

func checked(all values, file string) {
	schema, err := os.ReadFile(file)
	if err != nil {
		fail("render", err)
	}
	text, _ := json.Marshal(all)
	found, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(schema), gojsonschema.NewBytesLoader(text))
	if err != nil {
		fail(file, err)
	}
	var wrong []string
	for _, each := range found.Errors() {
		wrong = append(wrong, each.String())
	}
	if len(wrong) > 0 {
		fail("values are not what the schema says", strings.Join(wrong, "; "))
	}
}

func toYaml(value interface{}) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

func fromYaml(text string) values {
	made := values{}
	if err := yaml.Unmarshal([]byte(text), &made); err != nil {
		made["Error"] = err.Error()
	}
	return made
}

func required(warning string, value interface{}) (interface{}, error) {
	if text, isText := value.(string); value == nil || isText && text == "" {
		return nil, fmt.Errorf(warning)
	}
	return value, nil
}

func withoutCluster(_, _, _, _ string) values {
	return values{}
}

// What a missing key prints in spite of the option.
func printed(text string) string {
	return strings.ReplaceAll(text, "<no value>", "")
}

func engine(of string) *template.Template {
	made := template.New(of).Option("missingkey=zero")
	depth := 0
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["toYaml"] = toYaml
	functions["fromYaml"] = fromYaml
	functions["required"] = required
	functions["lookup"] = withoutCluster
	functions["include"] = func(name string, data interface{}) (string, error) {
		if depth++; depth > deepest {
			return "", fmt.Errorf("include %s: nested too deep", name)
		}
		defer func() { depth-- }()
		var text bytes.Buffer
		err := made.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["tpl"] = func(text string, data values) (string, error) {
		parsed, err := template.Must(made.Clone()).New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var out bytes.Buffer
		err = parsed.Execute(&out, data)
		return printed(out.String()), err
	}
	return made.Funcs(functions)
}

func templates(chart string) (found []string) {
	err := filepath.Walk(filepath.Join(chart, "templates"), func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		fail("render", err)
	}
	sort.Strings(found)
	return found
}

func render(chart string, asked request) result {
	var defaults values
	var about metadata
	load(filepath.Join(chart, "Chart.yaml"), &about)
	load(filepath.Join(chart, "values.yaml"), &defaults)
	chosen := merged(asked.Values, defaults)
	checked(chosen, filepath.Join(chart, "values.schema.json"))

	release := values{"Name": asked.Release, "Namespace": asked.Namespace, "Service": "Helm", "IsInstall": true}
	parsed := engine(about.Name)
	files := templates(chart)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			_, err = parsed.New(file).Parse(string(text))
		}
		if err != nil {
			fail("parse error", err)
		}
	}
	made := result{Manifests: map[string]string{}}
	for _, file := range files {
		name, _ := filepath.Rel(chart, file)
		if strings.HasPrefix(filepath.Base(file), "_") {
			continue
		}
		var text bytes.Buffer
		top := values{"Values": chosen, "Release": release, "Chart": about,
			"Capabilities": capabilities{APIVersions: asked.Apis},
			"Template":     values{"Name": about.Name + "/" + name, "BasePath": about.Name + "/templates"}}
		if err := parsed.ExecuteTemplate(&text, file, top); err != nil {
			fail("execution error", err)
		}
		if filepath.Base(file) == "NOTES.txt" {
			made.Notes = printed(text.String())
		} else {
			made.Manifests[name] = printed(text.String())
		}
	}
	return made
}

func main() {
	if len(os.Args) != 2 {
		fail("render", "one argument is needed, the chart's folder")
	}
	var asked request
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = yaml.Unmarshal(text, &asked)
	}
	if err != nil {
		fail("request", err)
	}
	json.NewEncoder(os.Stdout).Encode(render(os.Args[1], asked))
}
