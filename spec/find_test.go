package spec

import "testing"

func TestContainer(t *testing.T) {
	p := &Pod{InitContainers: []Container{{Name: "i"}}, Containers: []Container{{Name: "a"}, {Name: "b"}}}
	for name, want := range map[string]*Container{"i": &p.InitContainers[0], "b": &p.Containers[1], "c": nil} {
		if got := p.Container(name); got != want {
			t.Errorf("container %q: got %v, want %v", name, got, want)
		}
	}
}

func TestPortNumber(t *testing.T) {
	c := &Container{Name: "c", Ports: []ContainerPort{{Name: "web", ContainerPort: 8080}, {ContainerPort: 9090}}}
	for _, test := range []struct {
		port Port
		want int
		err  string
	}{
		{Port{Number: 80}, 80, ""},
		{Port{Number: 65535}, 65535, ""},
		{Port{Name: "web"}, 8080, ""},
		{Port{Name: "none"}, 0, `container "c": port "none" not found`},
		{Port{}, 0, `container "c": port 0: must be between 1 and 65535, inclusive`},
		{Port{Number: 65536}, 0, `container "c": port 65536: must be between 1 and 65535, inclusive`},
	} {
		got, err := c.PortNumber(test.port)
		if text := errorText(err); got != test.want || text != test.err {
			t.Errorf("%+v: got %d, %q, want %d, %q", test.port, got, text, test.want, test.err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestHasContent(t *testing.T) {
	for _, test := range []struct {
		name   string
		volume Volume
		want   bool
	}{
		{"emptyDir", Volume{EmptyDir: &EmptyDirVolume{}}, false},
		{"configMap", Volume{ConfigMap: &ConfigMapVolume{}}, true},
		{"secret", Volume{Secret: &SecretVolume{}}, true},
		{"downwardAPI", Volume{DownwardAPI: &DownwardAPIVolume{}}, true},
		{"projected", Volume{Projected: &ProjectedVolume{}}, true},
	} {
		if got := (&Pod{Volumes: []Volume{test.volume}}).HasContent(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
