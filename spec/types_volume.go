package spec

// Volume is a named source of files; exactly one of the source fields is set.
type Volume struct {
	Name                  string             `json:"name"`
	EmptyDir              *EmptyDirVolume    `json:"emptyDir,omitempty"`
	HostPath              *HostPathVolume    `json:"hostPath,omitempty"`
	PersistentVolumeClaim *ClaimVolume       `json:"persistentVolumeClaim,omitempty"`
	ConfigMap             *ConfigMapVolume   `json:"configMap,omitempty"`
	Secret                *SecretVolume      `json:"secret,omitempty"`
	Projected             *ProjectedVolume   `json:"projected,omitempty"`
	DownwardAPI           *DownwardAPIVolume `json:"downwardAPI,omitempty"`
	Image                 *ImageVolume       `json:"image,omitempty"`
}

// EmptyDirVolume begins empty and lives as long as the pod's UID.
type EmptyDirVolume struct {
	// Medium is "" for the disk or "Memory" for a tmpfs.
	Medium string `json:"medium,omitempty"`
	// SizeLimit is nil for no limit.
	SizeLimit *Quantity `json:"sizeLimit,omitempty"`
}

// HostPathVolume is a path of the machine.
type HostPathVolume struct {
	// Path is absolute after parsing; a relative one is seen from the pod file.
	Path string       `json:"path"`
	Type HostPathType `json:"type,omitempty"`
}

// HostPathType says what must be, or is made, at a host path before a mount.
type HostPathType string

// The host path types; the empty one checks nothing.
const (
	HostPathUnset             HostPathType = ""
	HostPathDirectoryOrCreate HostPathType = "DirectoryOrCreate"
	HostPathDirectory         HostPathType = "Directory"
	HostPathFileOrCreate      HostPathType = "FileOrCreate"
	HostPathFile              HostPathType = "File"
	HostPathSocket            HostPathType = "Socket"
	HostPathCharDevice        HostPathType = "CharDevice"
	HostPathBlockDevice       HostPathType = "BlockDevice"
)

// ClaimVolume is a folder of this machine that outlives the pod.
type ClaimVolume struct {
	ClaimName string `json:"claimName"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

// ConfigMapVolume shows the keys of a config map as files.
type ConfigMapVolume struct {
	Name        string      `json:"name"`
	Items       []KeyToPath `json:"items,omitempty"`
	DefaultMode *int32      `json:"defaultMode,omitempty"`
	Optional    bool        `json:"optional,omitempty"`
}

// SecretVolume shows the keys of a secret as files of a tmpfs.
type SecretVolume struct {
	SecretName  string      `json:"secretName"`
	Items       []KeyToPath `json:"items,omitempty"`
	DefaultMode *int32      `json:"defaultMode,omitempty"`
	Optional    bool        `json:"optional,omitempty"`
}

// KeyToPath puts one key at a relative path; Mode is nil for the default mode.
type KeyToPath struct {
	Key  string `json:"key"`
	Path string `json:"path"`
	Mode *int32 `json:"mode,omitempty"`
}

// ProjectedVolume puts several sources into one folder.
type ProjectedVolume struct {
	Sources     []Projection `json:"sources,omitempty"`
	DefaultMode *int32       `json:"defaultMode,omitempty"`
}

// Projection has exactly one field set.
type Projection struct {
	ConfigMap   *KeyProjection      `json:"configMap,omitempty"`
	Secret      *KeyProjection      `json:"secret,omitempty"`
	DownwardAPI *DownwardProjection `json:"downwardAPI,omitempty"`
}

// KeyProjection projects a config map or secret; no items means every key.
type KeyProjection struct {
	Name     string      `json:"name"`
	Items    []KeyToPath `json:"items,omitempty"`
	Optional bool        `json:"optional,omitempty"`
}

// DownwardProjection projects fields of the pod.
type DownwardProjection struct {
	Items []DownwardFile `json:"items,omitempty"`
}

// DownwardAPIVolume shows fields of the pod as files.
type DownwardAPIVolume struct {
	Items       []DownwardFile `json:"items,omitempty"`
	DefaultMode *int32         `json:"defaultMode,omitempty"`
}

// DownwardFile is one file; exactly one of the two references is set.
type DownwardFile struct {
	Path             string            `json:"path"`
	FieldRef         *FieldRef         `json:"fieldRef,omitempty"`
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef,omitempty"`
	Mode             *int32            `json:"mode,omitempty"`
}

// ImageVolume is the read-only root of an image.
type ImageVolume struct {
	Reference  string     `json:"reference,omitempty"`
	PullPolicy PullPolicy `json:"pullPolicy,omitempty"`
}

// VolumeMount shows a volume of the pod in a container.
type VolumeMount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	// SubPath is a relative path inside the volume; SubPathExpr is the same with
	// $(NAME) expanded. At most one of them is set.
	SubPath     string `json:"subPath,omitempty"`
	SubPathExpr string `json:"subPathExpr,omitempty"`
	ReadOnly    bool   `json:"readOnly,omitempty"`
	// RecursiveReadOnly is "" or Disabled, IfPossible, Enabled.
	RecursiveReadOnly string `json:"recursiveReadOnly,omitempty"`
	// MountPropagation is "" or None, HostToContainer, Bidirectional.
	MountPropagation string `json:"mountPropagation,omitempty"`
}

// ConfigMap is an inline config map. EnvFile, an absolute path after parsing,
// is read when the pod is accepted, and its keys join Data.
type ConfigMap struct {
	Name    string            `json:"name"`
	Data    map[string]string `json:"data,omitempty"`
	EnvFile string            `json:"envFile,omitempty"`
}

// Secret is an inline secret. No problem ever quotes a value of Data.
type Secret struct {
	Name    string     `json:"name"`
	Data    SecretData `json:"data,omitempty"`
	EnvFile string     `json:"envFile,omitempty"`
	// Credential names a systemd credential that holds the secret.
	Credential string `json:"credential,omitempty"`
}
