from internal_flows import maintenance, session

FLOWS = (*session.FLOWS, *maintenance.FLOWS)
