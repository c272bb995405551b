package lab

import (
	"cmp"
	"math"
	"slices"
	"time"

	"david/internal/ceph"
	"david/internal/experiment"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// Request is a measurement of arms under workloads as it was asked for, before it is known what it meets.
type Request struct {
	Kind         result.Kind
	Title        string
	Server       string // auto, a flavour, or the path of a binary
	Arms         []Arm
	Loads        []result.Workload
	Design       result.Design
	Caps         result.Caps
	CrossFlavour bool
	// Equal refuses arms that are not as durable as the control: by what they set before anything is started,
	// and by what their servers read back before they are loaded.
	Equal         bool
	Fresh         bool
	TCP           bool
	NoVolume      bool
	RBD           *ceph.Place // where not nil, the data lie on an image of a Ceph pool
	Instead       Trials
	Probes        int      // times that each path of a network is measured alone
	PluginFolders []string // of CNI's plugins, where a path takes one
	LightSpeed    bool     // the only arm is measured with its ceiling beside it
	adviser       *adviser // where MySQLTuner is to be asked
	Notes         []string
	Fio           Fio // on the arms' layouts, before their servers run
}

// Arm is an arm as it was asked for.
type Arm struct {
	Name, Title string
	Cnf         string // an option file
	Server      string // a binary of its own, as of server.Find
	Baseline    string // what others would configure, by the name that david race --list has
	Sets        []string
	// More, where not nil, gives further settings, which depend on the server's flavour and the memory it
	// may use (bytes).
	More func(flavour mycnf.Flavour, memory int64) ([]string, error)
	// Settings, where not nil, are all there is, and known to the server: none of the user's, which are
	// checked.
	Settings []mycnf.Setting
	Caps     result.Caps
	// ClientCPUs holds the load generator to so many CPUs; 0 does not.
	ClientCPUs float64
	Ceiling    bool // unsafe on purpose: for finding out only
	Pod        result.Pod
	Kernel     []result.KernelSetting // that hold while its server starts and is loaded
	Path       result.Path            // that the load takes to the server of all arms, see netpath
	Layout     *result.Layout         // its data lie on; nil: where everybody's do
}

// Trials say how long trials are, and how many blocks of them there are, where slices were asked for and
// the servers do not fit into memory beside each other; 0: as of the slices.
type Trials struct{ Seconds, Blocks int }

// apart is a request of slices as one of trials.
func (r Request) apart() Request {
	r.Design.Slices, r.Design.Twin = nil, r.Kind != result.KindExplain
	if r.Instead.Blocks > 0 && r.Design.Blocks > 0 {
		r.Design.Blocks = r.Instead.Blocks
	}
	r.Loads = slices.Clone(r.Loads)
	for i := range r.Loads {
		r.Loads[i].Seconds = cmp.Or(r.Instead.Seconds, r.Loads[i].Seconds)
	}
	return r
}

// Check refuses a comparison that nothing can come of.
func (r Request) Check() error {
	seen := map[string]bool{}
	for _, arm := range r.Arms {
		if seen[arm.Name] {
			return refuse("there are two arms called %s: give each its own name", arm.Name)
		}
		seen[arm.Name] = true
	}
	if !seen[r.Design.Control] {
		return refuse("no arm is called %s: the control is what the others are compared with; add --arm %s, or name another with --control", r.Design.Control, r.Design.Control)
	}
	if len(r.Arms) < 2 {
		return refuse("there is nothing to compare %s with: give a second --arm", r.Design.Control)
	}
	return r.Fits()
}

// Fits refuses what gives no verdict: fewer than three blocks, or a budget that does not hold them.
func (r Request) Fits() error {
	if r.Design.Slices != nil {
		return r.fitsInSlices()
	}
	trials := len(r.Arms)
	if r.Design.Twin {
		trials++
	}
	need := experiment.OneBlock(trials, r.Loads)
	if n := r.Design.Blocks; n > 0 && n < stats.LeastPairs {
		return refuse("--blocks %d: a verdict needs %d or more, and 6 or more to be narrow", n, stats.LeastPairs)
	}
	if need *= stats.LeastPairs; r.Design.Budget > 0 && r.Design.Budget < need.Seconds() {
		return refuse("--budget %s is too small: three blocks of %d trials, the fewest that give a verdict, take %s; the smallest that works is --budget %.0fs",
			time.Duration(r.Design.Budget*float64(time.Second)), trials*len(r.Loads), need, math.Ceil(need.Seconds()))
	}
	return nil
}

// note adds what a reader must know.
func (r *Request) note(notes ...string) { r.Notes = append(slices.Clip(r.Notes), notes...) }

// blame makes a server that would not start the user's bad input, where the user gave settings.
func (r Request) blame(err error) error {
	given := slices.ContainsFunc(r.Arms, func(arm Arm) bool { return arm.Cnf != "" || arm.Baseline != "" || len(arm.Sets) > 0 || arm.More != nil })
	return blame(err, given)
}
