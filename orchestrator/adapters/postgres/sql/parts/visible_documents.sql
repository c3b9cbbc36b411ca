documents.tenant_id = %(tenant_id)s AND (documents.user_id IS NULL OR documents.user_id = %(user_id)s)
  AND (CAST(%(domain)s AS text) IS NULL OR documents.domain IN ('', %(domain)s))
