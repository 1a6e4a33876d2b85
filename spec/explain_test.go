package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShortFormsOfReference checks that the short and the long form of each entry define the same pod, and that each is converted to the
// other.
func TestShortFormsOfReference(t *testing.T) {
	for _, form := range ShortForms {
		file := func(text string) []byte {
			pod, container := "", text
			switch first, rest, _ := strings.Cut(text, "\n"); {
			case !strings.HasPrefix(form.Field, "containers."):
				pod, container = text, ""
			case strings.HasPrefix(first, "configMaps") || strings.HasPrefix(first, "secrets = ["):
				pod, container = first, rest
			}
			if form.Field == "containers.volumeMounts" {
				pod = `volumes = [{ name = "data", emptyDir = {} }, { name = "html", emptyDir = {} }]`
			}
			if strings.Contains(text, "secretKeyRef") {
				pod = `secrets = [{ name = "db", data = { password = "p" } }]`
			}
			if strings.Contains(text, `web"`) {
				container += "\nports = [{ name = \"web\", containerPort = 80 }]"
			}
			return formFile(pod, container)
		}
		short, long := file(form.Short), file(form.Long)
		want := mustParse(t, "/a/web.toml", string(long))
		if diff := cmp.Diff(want, mustParse(t, "/a/web.toml", string(short))); diff != "" {
			t.Errorf("%s: the two forms differ (-long +short):\n%s", form.Field, diff)
		}
		for _, isShort := range []bool{false, true} {
			fromShort, _ := Options{}.Convert("/a/web.toml", short, isShort)
			fromLong, _ := Options{}.Convert("/a/web.toml", long, isShort)
			if diff := cmp.Diff(string(fromLong), string(fromShort)); diff != "" {
				t.Errorf("%s: converted to two texts (-long +short):\n%s", form.Field, diff)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	for _, test := range []struct{ path, want, typ, field string }{
		{"", "", "", "containers"},
		{"pod.spec", "", "", "containers"},
		{"pod.metadata.name", "name", "string", ""},
		{"containers.ports", "containers.ports", "list of ContainerPort", "containerPort"},
		{"containers[0].ports[].hostport", "containers.ports.hostPort", "number", ""},
		{"initContainers.envfile", "initContainers.envFile", "string", ""},
		{"containers", "containers", "list of Container", "envFile"},
		{"containers.resources.limits", "containers.resources.limits", "table of quantities", ""},
		{"containers.readinessProbe.httpGet.port", "containers.readinessProbe.httpGet.port", "number or string", ""},
		{"volumes.emptyDir.sizeLimit", "volumes.emptyDir.sizeLimit", "quantity", ""},
	} {
		e, err := Explain(test.path)
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		names := ""
		for _, f := range e.Fields {
			names += " " + f.Name
			if f.Type == "" || f.Description == "" {
				t.Errorf("%s: field %+v", test.path, f)
			}
		}
		if e.Path != test.want || e.Type != test.typ || e.Description == "" || (test.field == "") != (names == "") ||
			!strings.Contains(names+" ", " "+test.field) {
			t.Errorf("%s: %+v", test.path, e)
		}
	}
	for path, hint := range map[string]string{
		"contaners": `did you mean "containers"?`, "name.x": "", "containers.envFile.x": "", "metadata.spec.zzz": "",
	} {
		_, err := Explain(path)
		if unknown, is := errors.AsType[*FieldError](err); !is || unknown.Hint != hint || !strings.Contains(err.Error(), "no such field") {
			t.Errorf("%s: %v %+v", path, err, unknown)
		}
	}
	e, err := Explain("containers.startupProbe.exec")
	if err != nil || len(e.Forms) != 1 || e.Forms[0].Short != `startupProbe.exec = ["pg_isready"]` {
		t.Errorf("%+v, %v", e, err)
	}
}
