package main

// schemaVersion is the version of Grafana's dashboard model that the files have. It is the last
// one of this model: Grafana 12 and 13 have it.
const schemaVersion = 42

type (
	object = map[string]any
	list   = []any
)

// datasource refers to the dashboard's variable of that name. An import sets the variable
// to the data source that the user picks (__inputs). A provisioned dashboard, which has no
// inputs, begins with Grafana's own choice. In both cases it can be changed later.
var datasource = object{"type": "prometheus", "uid": "${datasource}"}

// dashboard is the whole dashboard of a source.
func dashboard(s *source) object {
	var panels list
	id, y := 0, 0
	add := func(p object, x, width, height int) {
		id++
		p["id"], p["gridPos"] = id, object{"x": x, "y": y, "w": width, "h": height}
		panels = append(panels, p)
	}
	for _, r := range s.rows() {
		add(object{"type": "row", "title": r.title, "collapsed": false, "panels": list{}}, 0, 24, 1)
		y++
		x, height := 0, 0
		for i := range r.panels {
			p := &r.panels[i]
			if x+p.width > 24 {
				x, y = 0, y+height
			}
			add(p.object(), x, p.width, p.height)
			x, height = x+p.width, p.height
		}
		y += height
	}
	return object{
		"__inputs": list{object{
			"name": "DS_PROMETHEUS", "label": "Prometheus", "description": "Where the metrics of runs are.",
			"type": "datasource", "pluginId": "prometheus", "pluginName": "Prometheus",
		}},
		"__requires": list{
			object{"type": "grafana", "id": "grafana", "name": "Grafana", "version": "12.0.0"},
			object{"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
		},
		"id": nil, "uid": s.uid, "title": s.title, "description": s.about, "tags": list{"carronade", "load"},
		"schemaVersion": schemaVersion, "editable": true, "graphTooltip": 1, "refresh": "5s",
		"time": object{"from": "now-15m", "to": "now"}, "timezone": "",
		"annotations": object{"list": s.annotations()},
		"templating":  object{"list": s.variables()},
		"panels":      panels,
	}
}

// variables are what the user of the dashboard can select.
func (s *source) variables() list {
	values := func(name, label, query string) object {
		return object{
			"type": "query", "name": name, "label": label, "datasource": datasource,
			"definition": query, "query": object{"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
			"refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*", "regex": "", "options": list{},
			"current": object{"text": list{"All"}, "value": list{"$__all"}},
		}
	}
	return list{
		object{
			"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "regex": "", "refresh": 1,
			"multi": false, "includeAll": false, "options": list{}, "current": object{"text": "${DS_PROMETHEUS}", "value": "${DS_PROMETHEUS}"},
		},
		values("target", "Target", "label_values("+s.active+", target)"),
		values("op", "Operation", "label_values("+s.active+`{target=~"$target"}, op)`),
		values("run", "Run", "label_values("+s.run+`{target=~"$target", op=~"$op"}, `+s.runLabel+")"),
	}
}

// annotations mark the start and the measurement of runs.
func (s *source) annotations() list {
	if !s.phases {
		return list{}
	}
	return list{
		object{
			"name": "Start", "datasource": datasource, "enable": true, "hide": false, "iconColor": "blue",
			"expr": "1000 * " + s.gauge("carronade_run_start_time_seconds"), "useValueForTime": true, // ms since the epoch
			"titleFormat": s.legend("start of"), "textFormat": "{{op}} {{target}}", "tagKeys": "op",
		},
		object{
			"name": "Measurement", "datasource": datasource, "enable": true, "hide": false, "iconColor": "green",
			"expr":        `carronade_phase{target=~"$target", op=~"$op", phase="measurement"}` + s.join,
			"titleFormat": s.legend("measurement of"), "textFormat": "{{op}} {{target}}", "tagKeys": "op", "step": "1s",
		},
	}
}

// object is the panel as Grafana reads it.
func (p *panel) object() object {
	var targets list
	for i, q := range p.queries {
		t := object{"refId": string(rune('A' + i)), "datasource": datasource, "expr": q.expr, "legendFormat": q.legend, "editorMode": "code"}
		switch p.kind {
		case "table":
			t["range"], t["instant"], t["format"] = false, true, "table" // the query itself has the range
		case "heatmap":
			t["range"], t["format"] = true, "heatmap"
		default:
			t["range"], t["format"] = true, "time_series"
		}
		targets = append(targets, t)
	}
	defaults := object{"unit": p.unit, "min": 0}
	o := object{
		"type": p.kind, "title": p.title, "description": p.about, "datasource": datasource, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": list{}},
	}
	switch p.kind {
	case "timeseries":
		defaults["custom"] = object{"lineWidth": 1, "fillOpacity": 0, "showPoints": "auto", "spanNulls": false}
		o["options"] = object{
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	case "heatmap":
		delete(defaults, "min")
		o["options"] = object{
			"calculate": false, "cellGap": 0, "yAxis": object{"axisPlacement": "left", "unit": "s"},
			"color":        object{"mode": "scheme", "scheme": "Oranges", "scale": "exponential", "exponent": 0.5, "steps": 64, "reverse": false},
			"filterValues": object{"le": 1e-9}, "rowsFrame": object{"layout": "auto"},
			"legend": object{"show": true}, "tooltip": object{"mode": "single", "yHistogram": true},
		}
	case "state-timeline":
		defaults["custom"] = object{"fillOpacity": 70, "lineWidth": 0}
		o["options"] = object{"mergeValues": true, "showValue": "never", "rowHeight": 0.9, "legend": object{"showLegend": false, "displayMode": "list", "placement": "bottom"}}
	case "stat":
		o["options"] = object{"reduceOptions": object{"calcs": list{"lastNotNull"}, "fields": "", "values": false}, "colorMode": "value", "graphMode": "none"}
	case "table":
		delete(o, "fieldConfig")
		o["options"] = object{"showHeader": true}
		hidden := object{"Time": true, "Value": true, "__name__": true, "job": true}
		o["transformations"] = list{object{"id": "organize", "options": object{"excludeByName": hidden, "indexByName": object{}, "renameByName": object{}}}}
	}
	return o
}
