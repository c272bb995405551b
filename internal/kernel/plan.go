package kernel

import "errors"

// Row is a setting of the table held against a machine.
type Row struct {
	Name   string `json:"name"`
	Disk   string `json:"disk,omitempty"`
	Now    string `json:"now"` // "" where it is absent
	P1     string `json:"p1,omitempty"`
	P4     string `json:"p4,omitempty"`
	Effect Effect `json:"effect"`
	// Because says why it matters so far.
	Because string `json:"because"`
	Advice  Advice `json:"advice"`
	Value   string `json:"value,omitempty"` // that is advised
	Reason  string `json:"reason"`
	Risk    string `json:"risk"`
	Source  string `json:"source"`
	Bounds  string `json:"bounds"` // of what david sets
	// Hindrance says what keeps this process from setting it; "" where nothing does.
	Hindrance string `json:"hindrance,omitempty"`
}

// Title names the setting, and the disk whose it is.
func (r Row) Title() string { return title(r.Name, r.Disk) }

func title(name, disk string) string {
	if disk == "" {
		return name
	}
	return name + " of " + disk
}

// Advice says what to do with a setting.
type Advice string

// What may be advised.
const (
	Leave Advice = "leave"
	Set   Advice = "set"
)

// Plan holds the table against the machine. It changes nothing.
func (m Machine) Plan() ([]Row, error) {
	var rows []Row
	for _, s := range Table() {
		row, err := m.row(s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (m Machine) row(s Setting) (Row, error) {
	r := Row{Name: s.Name, P1: s.P1, P4: s.P4, Advice: Leave, Reason: s.Reason, Risk: s.Risk, Source: s.Source, Bounds: s.values.String()}
	if s.ofDisk() {
		r.Disk = m.Disk
	}
	now, err := m.read(s, m.Disk)
	if errors.Is(err, ErrAbsent) {
		r.Effect, r.Because = Absent, err.Error()
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.Now, r.Hindrance = now, m.hindrance(s)
	r.Effect, r.Because = s.matters(m)
	if s.want == nil || r.Effect == None {
		return r, nil
	}
	if value := s.want(m, now); value != "" {
		r.Advice, r.Value = Set, value
	}
	return r, nil
}
