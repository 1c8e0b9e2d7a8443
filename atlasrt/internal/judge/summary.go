package judge

import (
	"math"
	"slices"
)

// Summary counts how cases of a source went.
type Summary struct {
	Source    string  `json:"source"`               // of the cases; "all"
	Schemas   int     `json:"schemas"`              // cases
	Refused   int     `json:"refused"`              // schemas
	Percent   float64 `json:"refused_percent"`      // of Schemas
	Instances int     `json:"instances"`            // of schemas that were compiled
	Stopped   int     `json:"valid_stopped"`        // valid instances, without those in Order
	Order     int     `json:"stopped_for_order"`    // valid instances whose properties come in another order than the schema's
	Passed    int     `json:"invalid_passed"`       // invalid instances
	Masks     Times   `json:"masks_us"`             // of all masks of valid instances
	Compile   Times   `json:"compile_to_a_mask_us"` // of schemas that were compiled
}

// Times are quantiles.
type Times struct {
	Count int          `json:"count"` // of times
	Mean  Microseconds `json:"mean"`  // of them
	Half  Microseconds `json:"half"`  // half of them are no longer
	Most  Microseconds `json:"most"`  // the longest
	P99   Microseconds `json:"p99"`   // 99 % of them are no longer
}

// Summarise counts by source, in the order of names, and all together behind them.
func Summarise(verdicts []*Verdict) []Summary {
	sources := map[string][]*Verdict{}
	for _, v := range verdicts {
		sources[v.Source] = append(sources[v.Source], v)
	}
	var names []string
	for name := range sources {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []Summary
	for _, name := range names {
		all = append(all, summarise(name, sources[name]))
	}
	return append(all, summarise("all", verdicts))
}

func summarise(source string, verdicts []*Verdict) Summary {
	s := Summary{Source: source, Schemas: len(verdicts)}
	var masks, compiles []Microseconds
	for _, v := range verdicts {
		if v.Refused != nil {
			s.Refused++
			continue
		}
		compiles = append(compiles, v.Compile)
		for _, o := range v.Tests {
			s.Instances++
			masks = append(masks, o.Masks...)
			switch {
			case o.Order:
				s.Order++
			case o.Valid && !o.Accepted:
				s.Stopped++
			case !o.Valid && o.Accepted:
				s.Passed++
			}
		}
	}
	if s.Schemas > 0 {
		s.Percent = 100 * float64(s.Refused) / float64(s.Schemas)
	}
	s.Masks, s.Compile = times(masks), times(compiles)
	return s
}

// times sorts all, and gives zeros where there are none.
func times(all []Microseconds) Times {
	if len(all) == 0 {
		return Times{}
	}
	slices.Sort(all)
	sum := Microseconds(0)
	for _, t := range all {
		sum += t
	}
	at := func(q float64) Microseconds { return all[int(math.Ceil(q*float64(len(all))))-1] }
	return Times{Count: len(all), Mean: sum / Microseconds(len(all)), Half: at(0.5), P99: at(0.99), Most: at(1)}
}
